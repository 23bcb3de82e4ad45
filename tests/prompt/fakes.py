"""A vocabulary without a model: bytes are tokens, and specials are matched as llama.cpp matches them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from b3node.prompt.tokens.vocabulary import Special

CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
USER_DEFINED = ("<think>", "</think>", "<tool_call>", "</tool_call>")


def special_tokens(control=CONTROL, user_defined=USER_DEFINED) -> tuple[Special, ...]:
    """Specials with ids from 256 on, in the order given."""
    return tuple(
        Special(index, text, "control" if index < 256 + len(control) else "user_defined")
        for index, text in enumerate((*control, *user_defined), start=256)
    )


@dataclass(frozen=True)
class FakeVocabulary:
    """Ids 0 to 255 are bytes, those above are `specials`. `space` puts a space before each text."""

    specials: tuple[Special, ...] = special_tokens()
    eog: frozenset[int] = frozenset({256, 258})
    bos: int | None = 256
    eos: int | None = 258
    add_bos: bool = False
    longest: int = 16
    chat_template: str | None = None
    tool_template: str | None = None
    space: bool = False

    def tokenize(self, text: str, *, continues: bool = False) -> list[int]:
        """Like llama.cpp with parse_special off: USER_DEFINED texts are matched, the longest first."""
        tokens: list[int] = []
        parts = _pattern(self.specials).split(" " * (self.space and not continues) + text)
        ids = {special.text: special.id for special in self.specials}
        for index, part in enumerate(parts):
            tokens += [ids[part]] if index % 2 else part.encode()
        return tokens

    def read(self, tokens) -> str:
        """The text that tokens spell."""
        texts = {special.id: special.text.encode() for special in self.specials}
        return b"".join(texts.get(token, bytes([token & 255])) for token in tokens).decode()


@cache
def _pattern(specials: tuple[Special, ...]) -> re.Pattern[str]:
    texts = [special.text for special in specials if special.kind == "user_defined"]
    return re.compile(f"({'|'.join(map(re.escape, sorted(texts, key=len, reverse=True))) or '(?!)'})")
