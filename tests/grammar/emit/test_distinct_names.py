"""Undeclared members that are counted, or that must each be a witness: their names differ."""

from __future__ import annotations

import json
from functools import cache
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from b3node.errors import Refusal
from b3node.grammar import schema_to_gbnf
from tests.grammar.drawing import Grammar
from tests.grammar.judge import valid, written

DECLARED = {"properties": {"id": False, "no": False}}
SORTED_OUT = {"patternProperties": {"^x": {"type": "string"}}}
KINDS: dict[str, Any] = {"open": {}, "beside declared names": DECLARED, "beside patterns": SORTED_OUT}


@cache
def compiled(kind: str, least: int) -> str:
    """Returns the grammar of objects of at least so many members."""
    return schema_to_gbnf({"type": "object", "minProperties": least, **KINDS[kind]})


def members(names) -> str:
    """Returns an object of these members as text, with repeated names kept."""
    return "{" + ",".join(f'{json.dumps(name, ensure_ascii=False)}:"v"' for name in names) + "}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "names",
    [("name", "age", "city"), ("k1", "k2", "k3"), ("", "a", "ab"), ("ab", "b", "a"), ("xy", "x", "y"), ("é", "e", "a b")],
)  # fmt: skip
def test_members_come_in_the_order_that_a_model_likes(engine, kind, names):
    """Yields three names that differ in their first two characters, and longer ones."""
    gbnf = compiled(kind, 3)
    assert engine.takes(gbnf, members(names))
    assert engine.takes(gbnf, members((*names, "more", "and more")))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(names=st.lists(st.text("abk_1", max_size=2), unique=True, min_size=3, max_size=3))
def test_three_names_are_taken_in_some_order_and_a_repeated_one_in_none(engine, kind, names):
    """Names that differ in their first two characters are counted; two of three are too few."""
    gbnf = compiled(kind, 3)
    assert any(engine.takes(gbnf, members(order)) for order in permutations(names))
    for order in permutations((*names[:2], names[0])):
        assert not engine.takes(gbnf, members(order))
        assert not engine.takes(gbnf, members((*order, names[1])))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(one=st.text("abkx_1", max_size=8), other=st.text("abkx_1", max_size=8))
def test_two_names_are_counted_when_they_differ(engine, kind, one, other):
    """Names of up to eight characters are distinguished, in any order; a repeated one counts once."""
    gbnf = compiled(kind, 2)
    assert engine.takes(gbnf, members((one, other))) == (one != other)
    assert not engine.takes(gbnf, members((one, one, one)))


def test_two_names_may_differ_anywhere_in_an_open_object(engine):
    """Names of any length differ."""
    gbnf = compiled("open", 2)
    for one, other in (("n" * 20 + "1", "n" * 20 + "2"), ("n" * 20, "n" * 21), ("schön", "schon")):
        assert engine.takes(gbnf, members((one, other)))
        assert engine.takes(gbnf, members((other, one)))


@pytest.mark.parametrize("least", [4, 8])
def test_more_members_begin_with_ever_later_characters(engine, least):
    """The required number of members comes in ascending order; then any others."""
    gbnf = compiled("open", least)
    names = ["", "1st", "Of", "_", "alpha", "beta", "gamma", "~"][-least:]
    assert engine.takes(gbnf, members(names))
    assert engine.takes(gbnf, members((*names, "a", "b")))
    assert not engine.takes(gbnf, members(names[1:]))
    assert not engine.takes(gbnf, members((*names[1:], names[1])))


def test_nine_members_cannot_be_told_apart():
    """The schema is refused with a reason."""
    with pytest.raises(Refusal, match="told apart"):
        compiled("open", 9)


INTEGER, STRING = {"type": "integer"}, {"type": "string"}
WITNESSES: dict[str, Any] = {
    "two, of one member or two": [{"additionalProperties": INTEGER}, {"additionalProperties": STRING}],
    "one among several": [{"additionalProperties": INTEGER}],
    "one of a pattern": [{"patternProperties": {"^a": INTEGER}}],
}


@cache
def demanding(name: str, least: int) -> tuple[Any, str]:
    """Returns a schema that demands so many members and those witnesses, and its grammar."""
    schema = {"type": "object", "minProperties": least, "allOf": [{"not": each} for each in WITNESSES[name]]}
    return schema, schema_to_gbnf(schema)


@pytest.mark.parametrize("least", [0, 1, 2, 3])
@pytest.mark.parametrize("name", WITNESSES)
@settings(max_examples=10)
@given(
    value=st.dictionaries(st.sampled_from(["a", "ba", "c", ""]), st.sampled_from([1, "x", None]), max_size=3)
)
def test_witnesses_are_counted_and_counted_members_are_witnesses(engine, name, least, value):
    """An undeclared member may be both, in some order; a later one of its name changes neither."""
    schema, gbnf = demanding(name, least)
    assert engine.takes_in_some_order(gbnf, value) == valid(schema, value)
    undone = f'{written(value)[:-1]}{"," if value else ""}"a":1,"a":1}}'
    assert not engine.takes(gbnf, undone) or valid(schema, json.loads(undone))


@pytest.mark.parametrize("name", WITNESSES)
@pytest.mark.parametrize("least", [0, 2, 3, 4])
def test_texts_drawn_conform(name, least):
    """Texts drawn from such grammars validate."""
    schema, gbnf = demanding(name, least)
    grammar = Grammar(gbnf)
    for seed in range(25):
        text = grammar.draw(seed, 60)
        assert valid(schema, json.loads(text)), text
