"""JSON is decoded exactly or refused, for a cost that the body's size bounds."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, strategies as st

from b3node.contract import strict_json
from b3node.contract.strict_json import (
    _TOKEN,
    MAX_INTEGER,
    MAX_LEVELS,
    MAX_VALUES,
    MIN_INTEGER,
    is_deeper,
    loads,
)
from b3node.errors import Refusal


def refusal(body: bytes) -> Refusal:
    with pytest.raises(Refusal) as caught:
        loads(body)
    assert caught.value.code == "invalid_request"
    return caught.value


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(MIN_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)


@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_what_is_sound_comes_back_as_it_was(value: object, ascii_only: bool, indent: int | None) -> None:
    """Any document within the limits decodes to itself, however it is spelled."""
    assert loads(json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()) == value


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  \n",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e400",
        b"[-1e400]",
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'{"\\ud800":1}',
        b'"\xed\xa0\x80"',
        b'"\xc0\x80"',
        b'"\xff"',
        b'{"\xff":1}',
        b"\xef\xbb\xbf{}",
        '{"a":1}'.encode("utf-16"),
        b"[1,]",
        b'{"a":1,}',
        b"{} {}",
        b"{}x",
        b"{}\x00",
        b"01",
        b"+1",
        b".5",
        b"1.",
        b"0x10",
        b"'a'",
        b'"a\nb"',
        b'"\\x41"',
        b"// note\n1",
        b"[1 2]",
        b'{"a" 1}',
        b"{1:2}",
        b"tru",
        b'{"a":"b',
    ],
)
def test_what_is_not_json_is_refused_as_a_whole(body: bytes) -> None:
    """Bytes that RFC 8259 does not allow are refused without a param."""
    assert refusal(body).param is None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a":"\xff"}', "not UTF-8 (byte 6)"),
        (b"[1,]", "not valid JSON (byte 3)"),
        (b"[1e999]", "out of range"),
    ],
)
def test_the_message_says_what_is_wrong(body: bytes, words: str) -> None:
    """The message of a refused body names the fault, and the place if it is known."""
    assert words in refusal(body).message


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b'{"model":"a","model":"b"}', "model"),
        (b'{"model":"a","mod\\u0065l":"b"}', "model"),
        (b'{"model":"a", "x":[{"model":":"},{"b":{"c":1,"c":2}}]}', "x[1].b.c"),
        (b'{"tools":[{},{"name":"f","parameters":{"type":"a","type":"b"}}]}', "tools[1].parameters.type"),
        (b'{"a":{"b":1},"c":{"b":1},"a":2}', "a"),
        (b'{"a":"{\\"x\\":1,\\"x\\":2}","b":[{"":1,"":2}]}', 'b[0].""'),
        (b'{"a\\\\":"\\\\\\"","a\\\\":1}', "a\\"),
        ('{"ключ":1,"ключ":2}'.encode(), "ключ"),
        (b'{"\\u0000":1,"\\u0000":2}', "�"),
        (b'{"%s":1,"%s":2}' % (b"k" * 90, b"k" * 90), "k" * 63 + "…"),
    ],
)
def test_a_name_that_stands_twice_is_named(body: bytes, param: str) -> None:
    """A repeated name is refused with its path, nested and escaped ones too."""
    assert refusal(body).param == param


def test_the_same_name_in_two_objects_is_no_repetition() -> None:
    """Colons and quotes in strings, and equal names in different objects, are not mistaken for a repeated
    name.
    """
    value = {"a": {"a": ':"a":', "b": '\\":'}, "b": [{"a": "\\\\"}, {"a": ","}]}
    assert loads(json.dumps(value).encode()) == value


def nested(levels: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * levels + closing * levels


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_the_deepest_nest_is_taken_and_one_more_is_not(opening: bytes, closing: bytes) -> None:
    """64 levels decode; 65, a thousand and a hundred thousand do not."""
    loads(opening * (MAX_LEVELS - 1) + b"[]" + closing * (MAX_LEVELS - 1))
    for levels in (MAX_LEVELS, 1000, 100_000):
        refusal(opening * levels + b"[]" + closing * levels)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (nested(65), None),
        (nested(100_000), None),
        (b'{"metadata":%s}' % nested(64), "metadata"),
        (b'{"metadata":%s}' % nested(100_000), "metadata"),
        (b'{"tools":[{"parameters":%s}]}' % nested(62), "tools[0].parameters"),
        (b'{"tools":[{},{"parameters":%s}]}' % nested(100_000), "tools[1].parameters"),
        (b'{"tools":[{"parameters":%s}]}' % (b'{"a":' * 70 + b"1" + b"}" * 70), "tools[0].parameters"),
        (b'{"text":{"format":{"schema":%s}}}' % (b'{"a":[' * 40 + b"]}" * 40), "text.format.schema"),
        (b'{"input":[%s]}' % nested(2000), "input"),
    ],
)
def test_a_nest_too_deep_names_its_field(body: bytes, param: str | None) -> None:
    """The param of a nest is the field that holds it, not a path through the nest."""
    refused = refusal(body)
    assert refused.param == param
    assert "deep" in refused.message


@pytest.mark.parametrize("piece", [b"1", b"{}", b"[]", b'""', b'"a,[{:"', b'"\\","', b"[1]", b'{"a":1}'])
def test_values_are_counted_exactly(piece: bytes) -> None:
    """The last allowed value decodes and the next one does not, for all kinds of values."""
    weight = 2 if piece in (b"[1]", b'{"a":1}') else 1
    fitting = (MAX_VALUES - 1) // weight
    loads(b"[" + b",".join([piece] * fitting) + b"]")
    too_many = b"[" + b",".join([piece] * (fitting + 1)) + b"]"
    assert refusal(too_many).message == "The request body holds more than 50,000 JSON values."


def test_text_full_of_structure_is_still_text() -> None:
    """Commas, brackets and escaped quotes inside one string never count as values."""
    text = ',[{:"\\' * 40_000
    assert loads(json.dumps({"a": text}).encode()) == {"a": text}


@pytest.mark.parametrize("number", [MIN_INTEGER, MAX_INTEGER, -0.5, 1e308, 5e-324, 1e-400])
def test_numbers_within_their_types_are_taken(number: float) -> None:
    """Integers of 64 bits and every double decode."""
    assert loads(b'{"a":[%s]}' % json.dumps(number).encode()) == {"a": [number]}


@pytest.mark.parametrize("digits", ["1" + "0" * 400, "1" * 5000, str(MAX_INTEGER + 1), str(MIN_INTEGER - 1)])
def test_integers_beyond_64_bits_are_named(digits: str) -> None:
    """An integer that no frame between the processes could carry is refused with its path."""
    refused = refusal(f'{{"a":[{{"b":"{digits}"}},{{"b":{digits}}}]}}'.encode())
    assert refused.param == "a[1].b"
    assert refusal(digits.encode()).param is None


BOMBS = {
    "objects": b"[" + b"{}," * 600_000 + b"{}]",
    "arrays": b"[" + b"[]," * 600_000 + b"[]]",
    "strings": b"[" + b'"",' * 600_000 + b'""]',
    "names": b"{" + b'"a":0,' * 300_000 + b'"b":0}',
    "one name each": b"[" + b'{"a":1},' * 250_000 + b"1]",
    "nest": b"[" * 1_000_000,
    "commas": b"," * 2_000_000,
    "quotes": b'[[["' * 500_000,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_before_it_becomes_objects(bomb: str) -> None:
    """A body of millions of values costs no decoding and no more memory than a few copies of itself."""
    body = BOMBS[bomb]
    with mock.patch.object(strict_json, "_decode", side_effect=AssertionError("decoded a bomb")):
        tracemalloc.start()
        try:
            refusal(body)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 4 * len(body) + 1_000_000


def test_an_open_string_is_read_once() -> None:
    """A string that never ends is one token of the slow pass, however many escaped quotes it holds."""
    body = b'["a' + b'\\"' * 100_000
    assert len(list(_TOKEN.finditer(body))) == 2


def test_the_slow_pass_reads_a_bounded_number_of_tokens() -> None:
    """Junk that is neither deep nor repeated ends the search for a flaw after six tokens a value."""
    pattern = _CountingPattern()
    with mock.patch.object(strict_json, "_TOKEN", pattern):
        assert strict_json._flaw(b":" * 1_000_000) is None
    assert pattern.tokens == 6 * MAX_VALUES


class _CountingPattern:
    def __init__(self) -> None:
        self.tokens = 0

    def finditer(self, body: bytes) -> Iterator[re.Match[bytes]]:
        for match in _TOKEN.finditer(body):
            self.tokens += 1
            yield match


def test_a_large_data_url_passes_without_being_searched_for_values() -> None:
    """Nine megabytes of one string decode as they are, next to escapes and colons."""
    url = "data:image/png;base64," + "A" * 9_000_000
    value = {"note": 'a:"b"\n', "image_url": url}
    assert loads(json.dumps(value).encode()) == value


# ------------------------------------------------------------------------------------------------- oracle


class _Reference:
    """The rules again, by the standard library's parser and with a hook for every object."""

    def __init__(self, text: str, depth: int, values: int) -> None:
        self.repeated = False
        document = json.loads(text, object_pairs_hook=self._pairs)
        self.is_sound = (
            not self.repeated and self._depth(document) <= depth and self._count(document) <= values
        )

    def _pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        self.repeated |= len(dict(pairs)) != len(pairs)
        return dict(pairs)

    def _depth(self, value: Any) -> int:
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        return 0 if children is None else 1 + max(map(self._depth, children), default=0)

    def _count(self, value: Any) -> int:
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
        return 1 + sum(map(self._count, children))


WORDS = st.sampled_from(["", "a", "b", ":", ",", "[{", '"', "\\", '\\"', 'a\\\\":', "é"])
SPELLED = st.recursive(
    st.sampled_from(["1", "null", "-2.5"]) | WORDS.map(json.dumps),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: "[" + " , ".join(items) + "]")
        | st.lists(st.tuples(WORDS.map(json.dumps), inner), max_size=4).map(
            lambda pairs: "{" + ",".join(f"{name} : {value}" for name, value in pairs) + "}"
        )
    ),
    max_leaves=16,
)


@given(SPELLED)
@example('{"a":1,"a":2}')
@example("[[[[]]]]")
@example('["","","","","","","","","","",""]')
def test_the_fast_passes_judge_as_a_slow_reader_does(text: str) -> None:
    """With limits of 3 levels and 10 values, a document is refused exactly when a hook for each object says
    so.
    """
    with mock.patch.multiple(strict_json, MAX_LEVELS=3, MAX_VALUES=10, _MAX_QUOTES=40, _MAX_TOKENS=60):
        is_taken = _is_taken(text.encode())
    assert is_taken is _Reference(text, 3, 10).is_sound


def _is_taken(body: bytes) -> bool:
    """Whether `body` decodes; if so, to the same as with the standard library."""
    try:
        document = loads(body)
    except Refusal:
        return False
    assert document == json.loads(body)
    return True


@given(st.binary() | st.text().map(str.encode) | st.text("[]{},:\"\\0a \n'").map(str.encode))
def test_any_bytes_decode_or_are_refused(body: bytes) -> None:
    """Nothing but a refusal comes out of bytes that are not JSON, from the slow pass neither."""
    strict_json._flaw(body)
    _is_taken(body)


@pytest.mark.parametrize(
    ("value", "levels", "deeper"),
    [
        (1, 0, False),
        ([], 0, True),
        ([], 1, False),
        ([{}], 1, True),
        ({"a": [1]}, 2, False),
        ([[], [[]]], 2, True),
    ],
)
def test_levels_are_those_of_the_deepest_branch(value: object, levels: int, deeper: bool) -> None:
    """A scalar has no level, an empty container has one."""
    assert is_deeper(value, levels) is deeper
