"""Index of markers, to find them in text: special tokens with a meaning for the model, such as `<|im_end|>`.

Not every special token is a marker. Some vocabularies declare runs of white space and other pieces of plain
text as USER_DEFINED; a client's text must be tokenized with them, or it reads like nothing the model has
seen. A marker is a special token whose copy by a client can be distinguished from the template's (see
`provenance`) and that is longer than one character, or not USER_DEFINED. All others are left to the
tokenizer, which matches USER_DEFINED text by itself and never parses CONTROL here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from b3node.prompt.tokens.provenance import has_twin
from b3node.prompt.tokens.vocabulary import Special


def is_marker(special: Special) -> bool:
    """Returns whether a special token is a marker, as the module's essay defines it."""
    return any(map(has_twin, special.text)) and (len(special.text) > 1 or special.kind != "user_defined")


class MarkerIndex:
    """Index of the markers among a vocabulary's special tokens, by first character and length.

    Vocabularies have up to thousands of specials and prompts up to megabytes, so a position is looked at only
    if a marker can begin there, and then once for each length that such a marker can have.

    Attributes:
        control_ids: the ids of the markers that are CONTROL.
    """

    def __init__(self, specials: Iterable[Special]) -> None:
        self._by_text = {special.text: special for special in specials if is_marker(special)}
        self.control_ids = frozenset(
            special.id for special in self._by_text.values() if special.kind == "control"
        )
        lengths: dict[str, set[int]] = {}
        for text in self._by_text:
            lengths.setdefault(text[0], set()).add(len(text))
        self._lengths = {first: sorted(many, reverse=True) for first, many in lengths.items()}
        self._begin = re.compile("[" + re.escape("".join(self._lengths)) + "]") if lengths else None

    def at(self, text: str, position: int) -> Special | None:
        """Returns the longest marker that begins at `position`, None if none does."""
        for length in self._lengths.get(text[position], ()):
            special = self._by_text.get(text[position : position + length])
            if special is not None:
                return special
        return None

    def find(self, text: str) -> Iterator[tuple[int, Special]]:
        """Yields markers with their positions, from the left, the longest at each, none inside another."""
        position = 0
        while self._begin and (begin := self._begin.search(text, position)):
            position = begin.start()
            special = self.at(text, position)
            if special is None:
                position += 1
            else:
                yield position, special
                position += len(special.text)

    def beginnings(self, text: str) -> Iterator[int]:
        """Yields every position at which a marker begins, inside another one too."""
        for begin in self._begin.finditer(text) if self._begin else ():
            if self.at(text, begin.start()):
                yield begin.start()
