"""Grammars that are kept parsed, cloned for each sequence and freed."""

from __future__ import annotations

import gc

from b3node.grammar import json_object_gbnf
from b3node.llama import grammar
from b3node.llama.grammar import Grammars
from b3node.llama.library import lib
from tests.llama.constrained import STRING, allowed, takes, write


class Parses:
    """Counts what is parsed and what is freed."""

    def __init__(self, monkeypatch) -> None:
        self.parsed = self.freed = 0
        self._parse, self._free = lib.llama_sampler_init_grammar, lib.llama_sampler_free
        monkeypatch.setattr(lib, "llama_sampler_init_grammar", self.parse)
        monkeypatch.setattr(lib, "llama_sampler_free", self.free)

    def parse(self, *arguments):
        self.parsed += 1
        return self._parse(*arguments)

    def free(self, *arguments):
        self.freed += 1
        return self._free(*arguments)


def test_a_grammar_is_parsed_once(vocabulary, monkeypatch) -> None:
    """The second request with a schema finds it parsed; both stand where they stand, independently."""
    parses, grammars = Parses(monkeypatch), Grammars(vocabulary)
    first, second = (grammars.constrain(json_object_gbnf()) for _ in range(2))

    write(first, '{"a"')

    assert parses.parsed == 1
    assert allowed(second) != allowed(first)
    assert ord("{") in allowed(second)
    assert ord("{") in allowed(grammars.constrain(json_object_gbnf()))


def test_what_is_kept_is_bounded(vocabulary, monkeypatch) -> None:
    """The least recently used grammar makes room; whoever has a clone of it goes on."""
    monkeypatch.setattr(grammar, "MAX_CACHED", 3)
    parses, grammars = Parses(monkeypatch), Grammars(vocabulary)
    clones = [grammars.constrain(f'root ::= "{number}" "x"') for number in (0, 1, 2, 0, 3)]
    assert (parses.parsed, parses.freed) == (4, 1)

    clones.append(grammars.constrain('root ::= "0" "x"'))
    assert parses.parsed == 4
    clones.append(grammars.constrain('root ::= "1" "x"'))
    assert (parses.parsed, parses.freed) == (5, 2)
    assert all(
        takes(clone, ord(str(number)), ord("x")) for number, clone in zip((0, 1, 2), clones, strict=False)
    )


def test_what_is_kept_is_bounded_in_bytes(vocabulary, monkeypatch) -> None:
    """Large grammars make room for each other before there are many."""
    monkeypatch.setattr(grammar, "MAX_CACHED_BYTES", 1_000_000)
    parses, grammars = Parses(monkeypatch), Grammars(vocabulary)
    clones = [
        grammars.constrain(f'root ::= "{number}" [a-z]{{0,2000}} [a-z]{{0,2000}}') for number in range(5)
    ]

    assert parses.freed == 3
    assert all(takes(clone, ord(str(number)), ord("x")) for number, clone in enumerate(clones))


def test_a_constraint_is_freed_with_its_sequence(vocabulary, monkeypatch) -> None:
    """Clones do not pile up."""
    parses, grammars = Parses(monkeypatch), Grammars(vocabulary)
    for _ in range(5):
        grammars.constrain(STRING)
    gc.collect()

    assert parses.freed == 5


def test_trying_keeps_nothing(vocabulary, monkeypatch) -> None:
    """A grammar that is only tried is freed, and what `constrain` refuses does not run."""
    parses, grammars = Parses(monkeypatch), Grammars(vocabulary)

    assert grammars.runs(STRING)
    assert not grammars.runs("root ::= root")
    assert (parses.parsed, parses.freed) == (2, 1)
