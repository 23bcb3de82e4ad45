"""Clients' characters are distinct from the template's, and come back unchanged."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given, strategies as st

from b3node.prompt.tokens import provenance
from b3node.prompt.tokens.provenance import IMAGE, client, client_schema, client_value, has_twin, plain

TEXT = st.text(st.characters(exclude_categories=["Cs"], max_codepoint=0xFFFFF))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)


def restored(value):
    """A JSON value with every text turned back."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(name): restored(member) for name, member in value.items()}
    return [restored(element) for element in value] if isinstance(value, list) else value


def test_the_example_holds() -> None:
    """The docstring's example is true."""
    assert doctest.testmod(provenance).failed == 0


@given(TEXT)
def test_a_text_comes_back_unchanged(text) -> None:
    """Writing in the private alphabet loses nothing and changes no length, but for two noncharacters."""
    expected = text.replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")

    assert plain(client(text)) == expected
    assert len(client(text)) == len(text)


@given(TEXT)
def test_no_character_of_a_client_can_be_the_templates(text) -> None:
    """A character with a twin is replaced by it; the others are white space, an escape's character or
    astral.
    """
    written = client(text)

    assert not any(has_twin(char) for char in written)
    assert all(
        char.isspace() or char in "\"'\\&." or char < " " or char == "\x7f" or char >= "\U00010000"
        for char in written
    )


@given(TEXT)
def test_white_space_is_where_it_was(text) -> None:
    """Trimming before or after makes no difference, so templates may trim."""
    assert plain(client(text).strip()) == plain(client(text.strip()))
    assert plain(client(text).rstrip("\n")) == plain(client(text.rstrip("\n")))


@pytest.mark.parametrize("code", [0x100000, 0x10003C, 0x10FFFD, 0x10FFFE, 0x10FFFF])
def test_a_client_cannot_write_in_the_private_alphabet(code) -> None:
    """Plane 16 in a client's text becomes the replacement character, so nothing there is trusted twice."""
    assert plain(client(f"a{chr(code)}b")) == "a\ufffdb"


def test_a_client_cannot_write_the_image_placeholder() -> None:
    """The placeholder is no character's twin."""
    assert IMAGE not in client("".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)])))


@given(JSON)
def test_values_keep_their_shape(value) -> None:
    """Numbers, booleans and null stay as they are; every string and name is the client's."""
    assert restored(client_value(value)) == restored(value)


def test_a_schema_stays_legible_to_templates() -> None:
    """Keywords and type names can be read; names, descriptions and values cannot."""
    written = client_schema(
        {"type": "object", "properties": {"tool_call": {"type": ["string", "null"], "enum": ["<a>"]}}}
    )

    assert isinstance(written, dict)
    assert written["type"] == "object"
    assert written["properties"] == {
        client("tool_call"): {"type": ["string", "null"], "enum": [client("<a>")]}
    }
