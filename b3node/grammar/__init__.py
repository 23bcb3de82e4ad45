"""Compiler of JSON Schema to GBNF: exact, or refused."""

from b3node.grammar.calls.arguments import Loosened
from b3node.grammar.calls.grammar import CallGrammar, TextAnswer, calls_gbnf
from b3node.grammar.compile import (
    conforms,
    json_object_gbnf,
    schema_to_gbnf,
    schema_to_loose_gbnf,
)
from b3node.grammar.gbnf.special_tokens import SpecialTokens
from b3node.grammar.judge import ArgumentsJudge, judge
from b3node.grammar.schema.limits import LIMITS, SchemaLimits
from b3node.grammar.schema.metaschema import check_schema
from b3node.grammar.schema.relax import Loose

__all__ = [
    "LIMITS",
    "ArgumentsJudge",
    "CallGrammar",
    "Loose",
    "Loosened",
    "SchemaLimits",
    "SpecialTokens",
    "TextAnswer",
    "calls_gbnf",
    "check_schema",
    "conforms",
    "json_object_gbnf",
    "judge",
    "schema_to_gbnf",
    "schema_to_loose_gbnf",
]
