"""JSON Schema to GBNF, exactly or not at all."""

from b3node.grammar.arguments import Loosened
from b3node.grammar.calls import Answer, CallGrammar, calls_gbnf
from b3node.grammar.front import (
    LIMITS,
    Limits,
    conforms,
    json_object_gbnf,
    schema_to_gbnf,
    schema_to_loose_gbnf,
)
from b3node.grammar.judge import Judge, judge
from b3node.grammar.loosening import Loose
from b3node.grammar.marks import Marks
from b3node.grammar.metaschema import check_schema

__all__ = [
    "LIMITS",
    "Answer",
    "CallGrammar",
    "Judge",
    "Limits",
    "Loose",
    "Loosened",
    "Marks",
    "calls_gbnf",
    "check_schema",
    "conforms",
    "json_object_gbnf",
    "judge",
    "schema_to_gbnf",
    "schema_to_loose_gbnf",
]
