"""A vocabulary without a model: bytes are tokens, and specials are matched as llama.cpp matches them."""

from __future__ import annotations

from dataclasses import dataclass

from b3node.prompt.vocabulary import Special

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
        fragments: list[str | int] = [" " * (self.space and not continues) + text]
        for special in sorted(self.specials, key=lambda special: -len(special.text)):
            if special.kind == "user_defined":
                fragments = [piece for fragment in fragments for piece in _parted(fragment, special)]
        return [
            token
            for fragment in fragments
            for token in ([fragment] if isinstance(fragment, int) else fragment.encode())
        ]

    def read(self, tokens) -> str:
        """The text that tokens spell."""
        texts = {special.id: special.text.encode() for special in self.specials}
        return b"".join(texts.get(token, bytes([token & 255])) for token in tokens).decode()


def _parted(fragment: str | int, special: Special) -> list[str | int]:
    if isinstance(fragment, int):
        return [fragment]
    pieces: list[str | int] = []
    for piece in fragment.split(special.text):
        pieces += [special.id, piece]
    return [piece for piece in pieces[1:] if piece != ""]
