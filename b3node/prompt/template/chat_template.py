"""A model's chat template, compiled once to write conversations; and templates for models without one.

Its output is still in two alphabets (see `provenance`); `segments` takes it from there. A template's own
error messages never reach a client: they are the publisher's, in any language, about fields that the client
does not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from jinja2 import TemplateError

from b3node.errors import Refusal
from b3node.prompt.template.conversation import Conversation
from b3node.prompt.template.messages import messages, tools
from b3node.prompt.template.sandbox import Sandbox, to_json
from b3node.prompt.tokens.provenance import client, plain
from b3node.prompt.tokens.vocabulary import PromptVocabulary

_REPR_OF_TWIN: Final = re.compile(r"\\U(0010[0-9a-f]{4})")
"""Python's `repr` of a twin, where a template prints a list or a mapping as it is. A client cannot write it:
its `U` would be a twin itself."""


CHATML: Final = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{{ '<|im_start|>assistant\\n' }}"
)
"""ChatML: most families without a template were tuned on it, if their vocabulary has its two tokens."""

PLAIN_TURNS: Final = (
    "{% for message in messages %}"
    "{{ message.role | capitalize + ': ' + message.content | trim + '\\n\\n' }}"
    "{% endfor %}"
    "{{ 'Assistant:' }}"
)
"""Turns with the speaker's name before them, for models that were not trained on chats."""


class BrokenTemplateError(ValueError):
    """A model's chat template cannot be used; the message is for the operator."""


class ChatTemplate:
    """A compiled chat template.

    Args:
        source: Jinja text, as the model file has it.
        bos: the text of the model's beginning-of-sequence token, or "".
        eos: the text of its end-of-sequence token, or "".

    Raises:
        BrokenTemplateError: the source is not a template.
    """

    def __init__(self, source: str, *, bos: str = "", eos: str = "") -> None:
        try:
            self._template = Sandbox().from_string(source)
        except (TemplateError, SyntaxError, RecursionError) as error:
            raise BrokenTemplateError(f"the model's chat template does not compile: {error}") from error
        self.source = source
        self._tokens = {"bos_token": bos, "eos_token": eos}

    def write(
        self, conversation: Conversation, variables: Mapping[str, object], now: datetime, limit: int
    ) -> str:
        """Returns the prompt up to where the model is to answer, clients' text in its own alphabet.

        Args:
            conversation: the conversation; must suit the template (see `adapt`).
            variables: further variables of the template, such as `enable_thinking`.
            now: the moment that `strftime_now` formats in every call.
            limit: characters after which writing stops; the caller refuses a longer prompt.

        Raises:
            Refusal: `invalid_request` if the template fails.
        """
        context = self._context(conversation, now) | self._tokens | dict(variables)
        written: list[str] = []
        length = 0
        try:
            for piece in self._template.generate(context):
                written.append(piece)
                length += len(piece)
                if length > limit:
                    break
        except Exception as error:
            raise Refusal(
                "invalid_request", "This model's chat template cannot write this conversation.", param="input"
            ) from error
        return _REPR_OF_TWIN.sub(_shown, "".join(written))

    def _context(self, conversation: Conversation, now: datetime) -> dict[str, object]:
        declared = tools(conversation.tools)
        return {
            "messages": messages(conversation),
            "tools": declared,
            "documents": None,
            "add_generation_prompt": True,
            "strftime_now": now.strftime,
            "functions": to_json([tool["function"] for tool in declared or []], indent=4),
            "datetime": now.strftime("%B %d %Y"),
        }


def default_template(vocabulary: PromptVocabulary) -> str:
    """Returns the template for a model without one: ChatML if the vocabulary has it, else plain turns."""
    texts = {special.text for special in vocabulary.specials}
    return CHATML if {"<|im_start|>", "<|im_end|>"} <= texts else PLAIN_TURNS


def _shown(match: re.Match[str]) -> str:
    """Returns a twin as Python shows the character that it stands for: itself, or an escape."""
    twin = chr(int(match[1], 16))
    char = plain(twin)
    return twin if char.isprintable() else client(repr(char)[1:-1])
