"""The compiler against an independent validator and llama.cpp's engine, on random schemas."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings, strategies as st

from b3node.errors import Refusal
from b3node.grammar import conforms, schema_to_gbnf
from tests.grammar.drawing import Grammar
from tests.grammar.judge import valid
from tests.grammar.schemas import schemas, values

_RELAXED = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@_RELAXED
@given(schemas, st.lists(values, min_size=3, max_size=5))
def test_a_value_is_accepted_exactly_when_it_conforms(engine, schema, candidates):
    """Some order of its members is accepted if the value conforms, and none if it does not."""
    try:
        gbnf = schema_to_gbnf(schema)
    except Refusal as refusal:
        if "no value" in refusal.message:
            assert not any(valid(schema, value) for value in candidates)
        return
    for value in candidates:
        assert engine.takes_in_some_order(gbnf, value) == valid(schema, value), value
        assert conforms(schema, value) == valid(schema, value), value


@_RELAXED
@given(schemas, st.integers(0, 1000))
def test_every_text_of_a_grammar_conforms(schema, seed):
    """Random texts of a grammar parse and validate."""
    try:
        grammar = Grammar(schema_to_gbnf(schema))
    except Refusal:
        return
    for offset in range(5):
        text = grammar.draw(seed + offset, 80)
        assert valid(schema, json.loads(text)), text
