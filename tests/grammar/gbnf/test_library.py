"""The hand-written grammars: the notation, the formats, and that every rule is used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from b3node.grammar.gbnf import library, reader
from b3node.grammar.languages import automaton, pattern_language
from b3node.grammar.languages.algebra import Algebra
from b3node.grammar.languages.charset import ANY
from tests.grammar.judge import valid

SUITE = (
    Path(__file__).parents[4]
    / "shared"
    / "corpora"
    / "json-schema-test-suite"
    / "draft2020-12"
    / "optional"
    / "format"
)
UNDISPUTED = sorted(library.FORMATS - library.NARROWED)

SAMPLES = {
    "date": (["2024-02-29", "2000-02-29"], ["2023-02-29", "1900-02-29", "2024-04-31", "24-01-01"]),
    "time": (["23:59:60Z", "01:02:03.5+14:00"], ["24:00:00Z", "12:00:60Z", "12:00:00"]),
    "date-time": (["1985-04-12t23:20:50.52z"], ["1985-02-30T00:00:00Z", "1985-04-12"]),
    "duration": (["P1Y2M3DT4H", "P3W", "PT36H"], ["P", "PT", "P1Y1W", "1D"]),
    "uuid": (["2EB8AA08-aa98-11ea-b4aa-73b441d16380"], ["2eb8aa08aa9811eab4aa73b441d16380"]),
    "ipv4": (["0.0.0.0", "255.1.20.199"], ["256.1.1.1", "01.1.1.1", "1.1.1"]),
    "ipv6": (["::", "1::d6:192.168.0.1", "1:2:3:4:5:6:7:8"], ["1::2::3", "1:2:3:4:5:6:7:8:9", "12345::"]),
    "hostname": (["a.b-c.example", "x"], ["", "-a.b", "a-.b", "a..b", "x" * 64, "xn--9n2bp8q"]),
    "idn-hostname": (["실례.테스트", "example.com"], ["-a", "a\u0300.b", "〮실례"]),
    "email": (["joe.b@example.com", '"joe b"@x.y', "a@[127.0.0.1]"], ["a@", "@b", ".a@b.c", "a..b@c.d"]),
    "idn-email": (["실례@실례.테스트"], ["2962"]),
    "uri": (["http://a.b/c?d=e#f", "urn:x:y", "http://[::1]:80/"], ["/rel", "http://a b", "http://a/%zz"]),
    "uri-reference": (["/a/b", "#f", "//h/p", ""], ["\\\\x", "http://a b"]),
    "iri": (["http://ƒøø.ßår/?∂éœ=πîx#πîüx"], ["/abc"]),
    "iri-reference": (["/âππ"], ["\\\\WINDOWS"]),
    "uri-template": (["http://x/{y:1}/{z*}"], ["http://x/{y"]),
    "json-pointer": (["", "/a~0b/~1"], ["a", "/~2"]),
    "relative-json-pointer": (["0", "1/a", "2#"], ["-1", "01", "/a"]),
    "regex": (["^[a-z]+(\\.\\d{2,3})?$", "(?!x)a|b"], ["^(abc]", "\\a", "(?i)a"]),
}


def language(name):
    """Returns a format's language in an algebra of its own."""
    algebra = Algebra(200_000)
    return algebra, algebra.from_dfa(library.format_dfa(name))


def test_every_format_has_samples():
    """Each format has samples."""
    assert set(SAMPLES) == set(library.FORMATS)


@pytest.mark.parametrize("name", sorted(library.FORMATS))
def test_formats_have_their_strings(name):
    """Valid strings are in the language, invalid ones are not; a second validator accepts the valid ones."""
    algebra, lang = language(name)
    good, bad = SAMPLES[name]
    for text in good:
        assert algebra.matches(lang, text), text
        assert valid({"format": name}, text), text
    for text in bad:
        assert not algebra.matches(lang, text), text


@pytest.mark.skipif(not SUITE.is_dir(), reason="the official suite is not here")
@pytest.mark.parametrize("name", sorted(library.FORMATS))
def test_formats_agree_with_the_official_suite(name):
    """No invalid string of the suite is in; no valid one is out, but for the formats that are narrowed."""
    path = SUITE / f"{name}.json"
    algebra, lang = language(name)
    for group in json.loads(path.read_text()) if path.is_file() else ():
        for case in group["tests"]:
            if isinstance(case["data"], str):
                inside = algebra.matches(lang, case["data"])
                assert inside == case["valid"] or (case["valid"] and name in library.NARROWED), case


@pytest.mark.parametrize("name", sorted(library._PLAIN_PARTS))
def test_plain_parts_are_parts(name):
    """The strings that replace a format that has a length bound have the format."""
    algebra, lang = language(name)
    found = library.plain_part(library.format_dfa(name))
    assert found is not None
    table, longest = found
    short = algebra.repeat(algebra.chars(ANY), 0, longest)
    outside = algebra.both([algebra.from_dfa(table), short, algebra.negate(lang)])
    if name == "email":
        outside = algebra.both(
            [outside, pattern_language.language(algebra, "^.{1,32}@([^.]{1,30}\\.){1,3}[^.]{1,30}$")]
        )
    if "hostname" in name:
        outside = algebra.both([outside, pattern_language.language(algebra, "^[^.]*(\\.[^.]{1,37}){0,2}$")])
    if name == "idn-email":
        outside = algebra.both(
            [outside, pattern_language.language(algebra, "^.{1,32}@([^.]{1,30}\\.){1,2}[^.]{1,30}$")]
        )
    assert automaton.is_void(algebra, outside, 100_000)


def test_every_rule_for_people_is_reached():
    """No rule of the files is left over, and none names a missing one."""
    table = reader.rules(library.source("formats.gbnf"))
    assert set(
        reader.closure(table, sorted(library.FORMATS | {rule for rule, _ in library._PLAIN_PARTS.values()}))
    ) == set(table)
    json_table = reader.rules(library.source("json.gbnf"))
    roots = ["value", "object", "array", "string", "integer", "char"]
    assert set(reader.closure(json_table, roots)) == set(json_table)


def test_recursive_and_malformed_rules_are_errors():
    """Mistakes in the files are errors."""
    for body in ("a", '"x" )', "b", '"x" ]'):
        with pytest.raises((reader.NotationError, IndexError)):
            reader.regular(Algebra(), {"a": body}, "a")
    with pytest.raises(reader.NotationError):
        reader.rules("a = b")


def test_the_notation_is_gbnf(engine):
    """The reader of the files and llama.cpp's parser accept the same strings."""
    body = r'"a\"\\\n" [x-z\]\-\u00e9]+ ( "q"{2,3} | [^a] )? "\x41"*'.replace("[^a]", "[b-c]")
    algebra = Algebra()
    lang = reader.regular(algebra, {"t": body}, "t")
    for text in ('a"\\\nx', 'a"\\\n]-éqqA', 'a"\\\nxqqqq', 'a"\\\n', 'a"\\\nzbAA', "a"):
        assert engine.takes(f"root ::= {body}\n", text) == algebra.matches(lang, text), text
