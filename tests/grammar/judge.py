"""Judges for the compiler's tests: llama.cpp's own engine for grammars, jsonschema-rs for instances."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import numpy as np

from b3node.llama.grammar import Grammars
from b3node.llama.vocab import Vocabulary


class Engine:
    """llama.cpp's engine, one byte a token, over a vocabulary that begins with the 256 bytes."""

    def __init__(self, path: str) -> None:
        self._grammars = Grammars(Vocabulary.load(path))
        self._eog = self._grammars.tokens.eog

    def takes(self, gbnf: str, text: str) -> bool:
        """Whether the grammar accepts exactly this text."""
        constraint = self._grammars.constrain(gbnf)
        for byte in text.encode():
            if not constraint.allows(np.array([byte], np.int32))[0]:
                return False
            constraint.accept(byte)
        return bool(constraint.allows(self._eog[:1])[0])


def written(value: object, *, blank: str = "") -> str:
    """A value as the grammars write it."""
    return json.dumps(value, ensure_ascii=False, separators=(f",{blank}", f":{blank}"))


def valid(schema: Any, value: object) -> bool:
    """Whether a value conforms by an implementation that is not ours (formats enforced)."""
    return jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(value)
