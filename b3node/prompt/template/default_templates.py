"""Templates for models that bring none, and the choice between them."""

from __future__ import annotations

from typing import Final

from b3node.prompt.tokens.vocabulary import Vocabulary

CHATML: Final = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{{ '<|im_start|>assistant\\n' }}"
)
"""ChatML: what most families without a template were tuned on, if their vocabulary has its two tokens."""

PLAIN: Final = (
    "{% for message in messages %}"
    "{{ message.role | capitalize + ': ' + message.content | trim + '\\n\\n' }}"
    "{% endfor %}"
    "{{ 'Assistant:' }}"
)
"""Turns with the speaker's name before them, for models that know nothing of chats."""


def default_template(vocabulary: Vocabulary) -> str:
    """The template for a model whose file has none: ChatML if the vocabulary has its tokens, else plain turns."""
    texts = {special.text for special in vocabulary.specials}
    return CHATML if {"<|im_start|>", "<|im_end|>"} <= texts else PLAIN
