"""The part of a model's vocabulary that prompts need, as a protocol; `llama.vocab` implements it."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec


class Special(msgspec.Struct, frozen=True):
    """A token that llama.cpp's tokenizer matches by its text, before anything else.

    CONTROL and UNKNOWN tokens are matched only on request, USER_DEFINED ones in every text, a client's too.
    """

    id: int
    """The token's id."""
    text: str
    """The text that it is matched by."""
    kind: Literal["control", "user_defined", "unknown"] = "control"
    """The type that the vocabulary gives it."""
    lstrip: bool = False
    """Whether it swallows the white space before it."""
    rstrip: bool = False
    """Whether it swallows the white space after it."""


class PromptVocabulary(Protocol):
    """A model's vocabulary. Ids are token ids, lengths bytes."""

    @property
    def specials(self) -> tuple[Special, ...]:
        """All tokens with a text that is matched as a whole; texts are never empty and never repeat."""
        ...

    @property
    def eog(self) -> frozenset[int]:
        """The tokens that end a generation."""
        ...

    @property
    def bos(self) -> int | None:
        """The token that marks the beginning of a prompt, if there is one."""
        ...

    @property
    def eos(self) -> int | None:
        """The token that marks its end, if there is one; no prompt ends with it unless the template does."""
        ...

    @property
    def longest(self) -> int:
        """Bytes of the longest token."""
        ...

    @property
    def add_bos(self) -> bool:
        """Whether a prompt begins with `bos` even if the template does not write it."""
        ...

    @property
    def chat_template(self) -> str | None:
        """The chat template in the model's file."""
        ...

    @property
    def tool_template(self) -> str | None:
        """The file's template of its own for conversations with functions."""
        ...

    def tokenize(self, text: str, *, continues: bool = False) -> list[int]:
        """Returns the tokens of text, in which no CONTROL and every USER_DEFINED token is matched.

        Args:
            text: plain text.
            continues: whether the text goes on where another one ended, so that no space is put before it
                even if the vocabulary begins every text with one.
        """
        ...
