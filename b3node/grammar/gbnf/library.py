"""The grammars that a person edits, as the compiler sees them.

The files travel inside the package (`b3node/grammars`, beside it in a checkout). They are the package's own
text, read once: no input of a client gets here. Automata of formats are built at first use and kept.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from b3node.grammar.gbnf import reader
from b3node.grammar.languages import automaton, pattern_language
from b3node.grammar.languages.algebra import Algebra, Dfa

_HERE: Final = Path(__file__).resolve().parents[2]
_MAX_FORMAT_STATES: Final = 60_000

ALIASES: Final = {
    "guid": "uuid",
    "url": "uri",
    "ip-address": "ipv4",
    "host-name": "hostname",
    "datetime": "date-time",
}
NARROWED: Final = frozenset(
    {"date-time", "datetime", "email", "host-name", "hostname", "idn-email", "idn-hostname", "regex", "time"}
)
"""Formats whose language here leaves out some strings that have the format (see formats.gbnf)."""


def source(name: str) -> str:
    """The text of one file of `grammars/`, such as `json_object.gbnf`."""
    for folder in (_HERE / "grammars", _HERE.parent / "grammars"):
        path = folder / name
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise FileNotFoundError(name)


@cache
def json_rules() -> dict[str, str]:
    """The rules of json.gbnf: name to body."""
    return reader.rules(source("json.gbnf"))


@cache
def _format_rules() -> dict[str, str]:
    return reader.rules(source("formats.gbnf"))


FORMATS: Final = frozenset({
    "date", "time", "date-time", "duration", "uuid", "ipv4", "ipv6", "hostname", "email", "idn-email", "idn-hostname",
    "uri", "uri-reference", "iri", "iri-reference", "uri-template", "json-pointer", "regex", "relative-json-pointer",
})  # fmt: skip
"""The values of `format` that are enforced."""


_XN_LABELS: Final = {
    "hostname": r"(?:^|\.)[^.]{2}--",
    "email": r"[@.][^.@]{2}--",
    "idn-email": r"[@.][^.@]{2}--",
    "idn-hostname": r"(?:^|\.)[^.]{2}--",
}
"""Where a label of a host name begins with two characters and two hyphens, by format."""


_PLAIN: Final = {
    "email": ("email-plain", 63),
    "hostname": ("hostname-plain", 63),
    "idn-email": ("email-plain", 63),
    "idn-hostname": ("hostname-plain", 63),
    "iri": ("uri-plain", 120),
    "iri-reference": ("uri-plain", 120),
    "uri": ("uri-plain", 120),
    "uri-reference": ("uri-plain", 120),
}
"""By format, the rule of a plain part of it, and the length up to which all its strings have the format."""


def is_format(table: Dfa) -> bool:
    """Whether an automaton is the very one of a format of `FORMATS` that was asked for."""
    return id(table) in _format_dfa_ids


@cache
def plain_part(table: Dfa) -> tuple[Dfa, int] | None:
    """A part of a format's language that is easy to count, and the length up to which it is one; else None."""
    for name, (plain, longest) in _PLAIN.items():
        if table == format_dfa(name):
            algebra = Algebra(_MAX_FORMAT_STATES)
            lang = reader.regular(algebra, _format_rules(), plain)
            return automaton.build(algebra, lang, _MAX_FORMAT_STATES), longest
    return None


@cache
def format_dfa(name: str) -> Dfa:
    """The minimal automaton of the strings that have a format of `FORMATS`."""
    algebra = Algebra(_MAX_FORMAT_STATES)
    lang = reader.regular(algebra, _format_rules(), name)
    if name in _XN_LABELS:  # labels like xn--... say what they say only by IDNA's tables, and none is written
        lang = algebra.both([lang, algebra.negate(pattern_language.language(algebra, _XN_LABELS[name]))])
    table = automaton.build(algebra, lang, _MAX_FORMAT_STATES)
    _format_dfa_ids.add(id(table))
    return table


_format_dfa_ids: Final = set[int]()
"""Identities of the automata of formats, which are kept for good."""


def standalone(name: str) -> str:
    """One file's rules with those of json.gbnf that they need: a grammar that stands alone."""
    own = reader.rules(source(name))
    table = {**json_rules(), **own}
    return "".join(f"{rule} ::= {table[rule]}\n" for rule in reader.closure(table, list(own)))
