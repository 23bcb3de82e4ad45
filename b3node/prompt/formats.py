"""What `text.format` asks for, as a grammar: compiled once a schema, refused where it cannot be enforced.

`strict`, `name` and `description` change nothing about what is enforced: a schema that was sent holds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from b3node.contract.request import TextFormat
from b3node.errors import Refusal
from b3node.grammar import json_object_gbnf, schema_to_gbnf

PARAM: Final = "text.format.schema"
CACHED: Final = 64
CACHED_BYTES: Final = 16 * 1024 * 1024
"""Grammars that are kept, and the bytes of them and their schemas."""


class Formats:
    """The grammars of answer formats.

    Args:
        runs: whether the model's runtime takes a grammar; asked once for each that is compiled.
    """

    def __init__(self, runs: Callable[[str], bool]) -> None:
        self._runs = runs
        self._compiled: OrderedDict[bytes, str] = OrderedDict()
        self._bytes = 0

    def grammar(self, text_format: TextFormat) -> str | None:
        """The GBNF that an answer must keep to; None for free text.

        Raises:
            Refusal: `invalid_request` at `text.format.schema`: the schema cannot be enforced exactly.
        """
        if text_format.type == "text":
            return None
        if text_format.schema is None:
            return json_object_gbnf()
        # Members in the client's order: it is the order in which an answer's are written.
        key = msgspec.json.encode(text_format.schema)
        if key not in self._compiled:
            self._keep(key, self._compile(text_format.schema))
        self._compiled.move_to_end(key)
        return self._compiled[key]

    def _compile(self, schema: dict[str, object]) -> str:
        grammar = schema_to_gbnf(schema, param=PARAM)
        if not self._runs(grammar):
            raise Refusal(
                "invalid_request",
                "The schema cannot be enforced: its grammar is too large for the model's runtime.",
                param=PARAM,
            )
        return grammar

    def _keep(self, key: bytes, grammar: str) -> None:
        self._compiled[key] = grammar
        self._bytes += len(key) + len(grammar)
        while len(self._compiled) > CACHED or self._bytes > CACHED_BYTES:
            oldest, freed = self._compiled.popitem(last=False)
            self._bytes -= len(oldest) + len(freed)
