"""JSON Schema to GBNF, exactly or not at all."""

from __future__ import annotations

from b3node.grammar.front import schema_to_gbnf

__all__ = ["schema_to_gbnf"]
