"""Hand-written grammars of the package: rules of JSON, and formats as automata.

The files are part of the wheel (`b3node/grammars`); in a checkout they lie next to the package. They are
trusted: no input of a client gets here. Each is read once. Automata of formats are built at first use and
cached.
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
"""Values of `format` that schemas use for another one."""
NARROWED: Final = frozenset(
    {"date-time", "datetime", "email", "host-name", "hostname", "idn-email", "idn-hostname", "regex", "time"}
)
"""Formats whose language here lacks some strings that have the format (see formats.gbnf)."""


def source(name: str) -> str:
    """Returns the text of one file of `grammars/`, such as `json_object.gbnf`.

    Raises:
        FileNotFoundError: there is no such file.
    """
    for folder in (_HERE / "grammars", _HERE.parent / "grammars"):
        path = folder / name
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise FileNotFoundError(name)


@cache
def json_rules() -> dict[str, str]:
    """Returns the rules of json.gbnf: name to body."""
    return reader.rules(source("json.gbnf"))


@cache
def _format_rules() -> dict[str, str]:
    return reader.rules(source("formats.gbnf"))


FORMATS: Final = frozenset({
    "date", "time", "date-time", "duration", "uuid", "ipv4", "ipv6", "hostname", "email", "idn-email",
    "idn-hostname", "uri", "uri-reference", "iri", "iri-reference", "uri-template", "json-pointer", "regex",
    "relative-json-pointer",
})  # fmt: skip
"""The values of `format` that are enforced."""


_XN_LABELS: Final = {
    "hostname": r"(?:^|\.)[^.]{2}--",
    "email": r"[@.][^.@]{2}--",
    "idn-email": r"[@.][^.@]{2}--",
    "idn-hostname": r"(?:^|\.)[^.]{2}--",
}
"""By format, a pattern of host names with a label of two characters and two hyphens, such as `xn--`."""


_PLAIN_PARTS: Final = {
    "email": ("email-plain", 63),
    "hostname": ("hostname-plain", 63),
    "idn-email": ("email-plain", 63),
    "idn-hostname": ("hostname-plain", 63),
    "iri": ("uri-plain", 120),
    "iri-reference": ("uri-plain", 120),
    "uri": ("uri-plain", 120),
    "uri-reference": ("uri-plain", 120),
}
"""By format, the rule of a plain part of it, and the length up to which its strings have the format."""


def is_format(dfa: Dfa) -> bool:
    """Returns whether an automaton is (by identity) one that `format_dfa` returned."""
    return id(dfa) in _format_dfa_ids


@cache
def plain_part(dfa: Dfa) -> tuple[Dfa, int] | None:
    """Returns a part of a format's language with few states, and the length up to which it is valid.

    None if the automaton is not that of such a format.
    """
    for name, (plain, longest) in _PLAIN_PARTS.items():
        if dfa == format_dfa(name):
            algebra = Algebra(_MAX_FORMAT_STATES)
            lang = reader.regular(algebra, _format_rules(), plain)
            return automaton.build(algebra, lang, _MAX_FORMAT_STATES), longest
    return None


@cache
def format_dfa(name: str) -> Dfa:
    """Returns the minimal automaton of the strings that have a format of `FORMATS`."""
    algebra = Algebra(_MAX_FORMAT_STATES)
    lang = reader.regular(algebra, _format_rules(), name)
    if name in _XN_LABELS:  # the validity of labels like xn--... needs IDNA's tables, so none is accepted
        lang = algebra.both([lang, algebra.negate(pattern_language.language(algebra, _XN_LABELS[name]))])
    dfa = automaton.build(algebra, lang, _MAX_FORMAT_STATES)
    _format_dfa_ids.add(id(dfa))
    return dfa


_format_dfa_ids: Final = set[int]()
"""Identities of the automata of formats, which are never freed."""


def standalone(name: str) -> str:
    """Returns the rules of one file with the rules of json.gbnf that they need, as a complete grammar."""
    own = reader.rules(source(name))
    table = {**json_rules(), **own}
    return "".join(f"{rule} ::= {table[rule]}\n" for rule in reader.closure(table, list(own)))
