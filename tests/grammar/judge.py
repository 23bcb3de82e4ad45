"""References for the compiler's tests: llama.cpp's engine for grammars, jsonschema-rs for instances."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import numpy as np

from b3node.llama.grammar import Grammars, LlamaGrammar
from b3node.llama.vocab import Vocabulary


class Engine:
    """llama.cpp's engine, one byte a token, over a vocabulary that begins with the 256 bytes."""

    def __init__(self, path: str) -> None:
        self._grammars = Grammars(Vocabulary.load(path))
        self._eog = self._grammars.tokens.eog

    def takes(self, gbnf: str, text: str) -> bool:
        """Returns whether the grammar accepts exactly this text."""
        return any(map(self._ended, self._after(self._grammars.constrain(gbnf), text)))

    def takes_in_some_order(self, gbnf: str, value: object) -> bool:
        """Returns whether the grammar accepts the value in some order of its members at each level."""
        return any(map(self._ended, self._written(self._grammars.constrain(gbnf), value)))

    def _ended(self, at: LlamaGrammar) -> bool:
        return bool(at.allows(self._eog[:1])[0])

    def _after(self, at: LlamaGrammar, text: str) -> Iterator[LlamaGrammar]:
        """Returns the place after a text, if the grammar allows it here."""
        at = at.clone()
        for byte in text.encode():
            if not at.allows(np.array([byte], np.int32))[0]:
                return
            at.accept(byte)
        yield at

    def _written(self, at: LlamaGrammar, value: object) -> Iterator[LlamaGrammar]:
        """Returns the places after a value, one for each order of members that is allowed here."""
        if isinstance(value, dict):
            for inside in self._after(at, "{"):
                yield from self._members(inside, value, "")
        elif isinstance(value, list):
            yield from self._items(at, value, "[")
        else:
            yield from self._after(at, written(value))

    def _items(self, at: LlamaGrammar, left: list[object], mark: str) -> Iterator[LlamaGrammar]:
        if not left:
            yield from self._after(at, "[]" if mark == "[" else "]")
        for marked in self._after(at, mark) if left else ():
            for after in self._written(marked, left[0]):
                yield from self._items(after, left[1:], ",")

    def _members(self, at: LlamaGrammar, left: dict[str, object], comma: str) -> Iterator[LlamaGrammar]:
        if not left:
            yield from self._after(at, "}")
        for name, value in left.items():
            rest = {other: left[other] for other in left if other != name}
            for valued in self._after(at, f"{comma}{written(name)}:"):
                for after in self._written(valued, value):
                    yield from self._members(after, rest, ",")


def written(value: object, *, blank: str = "") -> str:
    """Returns a value as the grammars write it."""
    return json.dumps(value, ensure_ascii=False, separators=(f",{blank}", f":{blank}"))


def valid(schema: Any, value: object) -> bool:
    """Returns whether a value conforms, by an independent implementation with formats enforced."""
    return jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(value)
