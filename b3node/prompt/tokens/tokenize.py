"""Tokenization of segments.

A control token is its id. Text is tokenized as text, in the same stretches as llama.cpp itself would do it,
so a prompt that tries nothing has the tokens that the model was trained on. A text that spells a marker is
cut after the marker's first character and both sides are tokenized apart: it reads the same and is nothing
but text. Cutting is needed because llama.cpp matches USER_DEFINED tokens in any text (with parse_special off
too), and because a SentencePiece tokenizer may put a control token's text together by merging.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from b3node.errors import Refusal
from b3node.prompt.tokens.markers import MarkerIndex
from b3node.prompt.tokens.segments import ControlSegment, Segment, TextSegment
from b3node.prompt.tokens.vocabulary import PromptVocabulary

_COUNTED_CONTEXTS: Final = 2
"""Contexts that a prompt may fill before the exact count of its tokens is given up."""


class Prompt(msgspec.Struct, frozen=True):
    """A prompt as tokens and as the text that they spell."""

    tokens: tuple[int, ...]
    """The token ids."""
    text: str
    """The plain text, special tokens by theirs."""
    cache_boundaries: tuple[int, ...]
    """Ascending token counts, each the length of a prefix that ends with the end of a turn; with any control
    token if the template ends turns without an end-of-generation token."""


def tokenize(
    segments: tuple[Segment, ...], vocabulary: PromptVocabulary, markers: MarkerIndex, n_ctx: int
) -> Prompt:
    """Returns the prompt of `segments`, with a beginning-of-sequence token where the model wants one.

    Args:
        segments: all of a rendered prompt.
        vocabulary: the model's.
        markers: every marker of that vocabulary.
        n_ctx: tokens of the model's context; at least one must be left for the answer.

    Raises:
        Refusal: `context_length_exceeded`, without tokenizing anything if the text alone is too long.
    """
    text = "".join(segment.text for segment in segments)
    check_length(len(text.encode()), vocabulary, n_ctx)
    tokens = _bos(segments, vocabulary)
    after_control: list[int] = []
    for segment in segments:
        if isinstance(segment, ControlSegment):
            tokens.append(segment.id)
            after_control.append(len(tokens))
        else:
            for piece in _text_tokens(segment, vocabulary, markers):
                tokens += piece
                if len(tokens) > _COUNTED_CONTEXTS * n_ctx:
                    raise _too_long(f"at least {len(tokens)}", n_ctx)
    if len(tokens) >= n_ctx:
        raise _too_long(str(len(tokens)), n_ctx)
    turn_ends = tuple(count for count in after_control if tokens[count - 1] in vocabulary.eog)
    return Prompt(tuple(tokens), text, turn_ends or tuple(after_control))


def check_length(length: int, vocabulary: PromptVocabulary, n_ctx: int) -> None:
    """Refuses a prompt of at least `length` bytes if it cannot fit even in the longest tokens.

    Raises:
        Refusal: `context_length_exceeded`.
    """
    shortest = -(-length // vocabulary.longest)
    if shortest > n_ctx:
        raise _too_long(f"at least {shortest}", n_ctx)


def _too_long(tokens: str, n_ctx: int) -> Refusal:
    return Refusal(
        "context_length_exceeded",
        f"The prompt has {tokens} tokens; this model's context of {n_ctx} leaves no room for an answer.",
        param="input",
    )


def _bos(segments: tuple[Segment, ...], vocabulary: PromptVocabulary) -> list[int]:
    """Returns the token before all others, unless the template wrote it or the model wants none."""
    first = segments[0] if segments else None
    written = isinstance(first, ControlSegment) and first.id == vocabulary.bos
    return [vocabulary.bos] if vocabulary.add_bos and vocabulary.bos is not None and not written else []


def _text_tokens(
    segment: TextSegment, vocabulary: PromptVocabulary, markers: MarkerIndex
) -> Iterator[list[int]]:
    for index, piece in enumerate(_unmarked(segment.text, markers)):
        tokens = vocabulary.tokenize(piece, continues=index > 0)
        if not markers.control_ids.isdisjoint(tokens):
            raise RuntimeError("a control token came out of plain text")
        yield tokens


def _unmarked(text: str, markers: MarkerIndex) -> Iterator[str]:
    """Yields the text in pieces of which none spells a marker."""
    start = 0
    for begin in markers.beginnings(text):
        yield text[start : begin + 1]
        start = begin + 1
    yield text[start:]
