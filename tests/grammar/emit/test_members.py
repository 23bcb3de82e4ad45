"""Many optional members: every choice of them in order is accepted, and few stacks are live."""

from __future__ import annotations

import json
import random

import pytest

from b3node.grammar import schema_to_gbnf
from tests.grammar.drawing import Grammar
from tests.grammar.judge import valid, written

NAMES = [*(f"field_{i}" for i in range(50)), "field", "f", 'fie"ld', "field_1\n", "", "é", "other"]
REQUIRED = ["field_7", "field_23"]
SCHEMA = {
    "type": "object",
    "properties": {**{name: {"type": "integer"} for name in NAMES}, "never": False},
    "required": REQUIRED,
}


@pytest.mark.parametrize("open_", [False, True])
def test_every_choice_in_order_is_accepted(engine, open_):
    """Required names are present, others optional, in order and once; undeclared ones need `open_`."""
    schema = {**SCHEMA, "additionalProperties": open_}
    gbnf = schema_to_gbnf(schema)
    pick = random.Random(1)
    for size in (0, 1, 3, 10, 57):
        chosen = set(pick.sample(NAMES, size)) | set(REQUIRED)
        value = {name: 1 for name in NAMES if name in chosen}
        assert engine.takes(gbnf, written(value))
        assert engine.takes(gbnf, written({**value, "extra": "x"})) == open_
        assert not engine.takes(gbnf, written({**value, "never": 1}))
        missing = {name: 1 for name in value if name != "field_23"}
        assert not engine.takes(gbnf, written(missing))
        backwards = dict(reversed(value.items()))
        assert not engine.takes(gbnf, written(backwards))
        assert not engine.takes(gbnf, written(value)[:-1] + ',"other":1,"other":2}')


def test_all_optional_may_be_none(engine):
    """The empty object, and any one member."""
    gbnf = schema_to_gbnf({**SCHEMA, "required": [], "additionalProperties": False})
    assert engine.takes(gbnf, "{}")
    for name in NAMES:
        assert engine.takes(gbnf, written({name: 1}))
        assert not engine.takes(gbnf, written({name: "x"}))
    assert not engine.takes(gbnf, '{"field_1":1,}')
    assert not engine.takes(gbnf, "{,}")


@pytest.mark.parametrize("open_", [False, True])
def test_texts_drawn_conform(open_):
    """Texts that the tries write validate."""
    schema = {**SCHEMA, "additionalProperties": open_}
    grammar = Grammar(schema_to_gbnf(schema))
    for seed in range(30):
        assert valid(schema, json.loads(grammar.draw(seed, 200)))
