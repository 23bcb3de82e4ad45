"""Rules as text: counts in blocks, simplification, and no shape that llama.cpp mishandles."""

from __future__ import annotations

import re

import pytest

from b3node.grammar import schema_to_gbnf
from b3node.grammar.gbnf.rules import Rules, Times, printed
from b3node.grammar.gbnf.strings import char_class, escaped, literal, spellings
from tests.grammar.test_compile import CASES


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 511), (0, 512), (0, 513), (255, 1025), (600, 600), (513, 2100), (1800, None), (3, 3)],
)
def test_counts_are_exact_at_every_edge(engine, low, high):
    """Blocks and their remainders add up, and no count passes the engine's limit."""
    rules = Rules(100)
    item = rules.of(('"x"',), ('"y"',))
    root = rules.of((Times(item, low, high),))
    gbnf = printed(rules.simplified(root) or [], {})
    assert all(
        int(count) <= 512 for found in re.findall(r"\{(\d+)(?:,(\d+))?\}", gbnf) for count in found if count
    )
    edges = {low - 1, low, low + 1, low + 256, low + 512}
    edges |= set() if high is None else {high - 256, high - 1, high, high + 1}
    for count in sorted(edge for edge in edges if 0 <= edge < 2200):
        assert engine.takes(gbnf, "x" * count) == (low <= count and (high is None or count <= high)), count


def test_unproductive_rules_are_dropped():
    """An alternative that needs a rule without an end is no alternative; a root without one is no grammar."""
    rules = Rules(100)
    never = rules.new()
    rules.add(never, ('"a"', never))
    root = rules.of(('"b"', never), ('"c"', Times(never, 0, 5)))
    assert rules.simplified(root) == [[('"c"',)]]
    assert rules.simplified(never) is None


def test_equal_rules_are_one():
    """Equal rules are printed once, even if they differ only in the equal rules that they name."""
    rules = Rules(100)
    one, two = rules.new(), rules.new()
    ends = [rules.new(), rules.new()]
    for end in ends:
        rules.add(end, ('"x"',))
        rules.add(end, ('"y"',))
    rules.add(one, ('"a"', ends[0], ends[0]))
    rules.add(two, ('"a"', ends[1], ends[1]))
    table = rules.simplified(rules.of((one, '"-"'), (two, '"+"'))) or []
    assert len(table) == 3


@pytest.mark.parametrize("name", CASES)
def test_grammars_have_no_dangerous_shape(name):
    """No negated class, no empty class, no count past 512, no undefined or repeated rule, no left
    recursion.
    """
    gbnf = schema_to_gbnf(CASES[name][0])
    bodies = dict(line.split(" ::= ", 1) for line in gbnf.splitlines())
    assert len(bodies) == gbnf.count("\n")
    quoted = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]')
    assert not any(
        piece.startswith(("[^", "[]")) for body in bodies.values() for piece in quoted.findall(body)
    )
    plain = {name: re.sub(r"\{[0-9,]+\}|[*+?]", "", quoted.sub("@", body)) for name, body in bodies.items()}
    for body in plain.values():
        assert set(re.findall(r"[a-z][a-z0-9-]*", body)) <= set(bodies)
    first = {name: {row.split()[0] for row in body.split("|") if row.split()} for name, body in plain.items()}
    assert not _cyclic({name: heads & set(bodies) for name, heads in first.items()})


def _cyclic(edges):
    """Returns whether there is left recursion."""
    left = {name: set(to) for name, to in edges.items()}
    while ready := [name for name, to in left.items() if not to]:
        for name in ready:
            del left[name]
        for to in left.values():
            to.difference_update(ready)
    return bool(left)


@pytest.mark.parametrize("text", ["plain", 'q"b\\', "\n\t\x00\x1f\x7f", "é☃😀", "]-^[", "{}$"])
def test_literals_and_classes_are_escaped(engine, text):
    """Any text of a client is a literal of exactly that text."""
    assert engine.takes(f"root ::= {literal(escaped(text))}\n", escaped(text))
    points = sorted({ord(char) for char in text if char >= " "})
    body = char_class(tuple((point, point) for point in points))
    for point in points:
        assert engine.takes(f"root ::= {body}\n", chr(point))


def test_every_character_has_one_spelling(engine):
    """Raw where JSON allows it, else the short escape, else the long one."""
    pieces = " | ".join(spellings(((0, 0x7F),)))
    gbnf = f'root ::= {pieces}\nescape ::= ["\\\\bfnrt] | "u00" control\ncontrol ::= "0" [0-7be-f] | "1" [0-9a-f]\n'
    for point in range(0x80):
        assert engine.takes(gbnf, escaped(chr(point)))
        assert (
            not engine.takes(gbnf, f"\\u{point:04X}")
            or point & 0xF == 0xB
            or escaped(chr(point))[:2] == "\\u"
        )
