"""What a grammar forces: the text that has to come next, and never a byte more."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from b3node.engine.sampling.constraint import ForcedText
from b3node.grammar import json_object_gbnf, schema_to_gbnf
from b3node.llama.grammar import Grammars, LlamaGrammar
from b3node.llama.vocab import Vocabulary
from tests.llama.sentencepiece import sentencepiece_model
from tests.zoo.vocabulary import EOG, IM_END, TOOL_CALL

END = min(EOG)


@pytest.fixture(scope="module", params=["bytes", "sentencepiece"])
def grammars(zoo, tmp_path_factory, request) -> Grammars:
    """Of a vocabulary with all bytes, and of one with bytes beside characters and spaces before words."""
    path = zoo.random("llama", strict=True)
    if request.param == "sentencepiece":
        path = sentencepiece_model(tmp_path_factory.mktemp("sentencepiece") / "model.gguf")
    return Grammars(Vocabulary.load(str(path)))


@pytest.fixture(scope="module")
def byte_grammars(zoo) -> Grammars:
    return Grammars(Vocabulary.load(str(zoo.random("llama", strict=True))))


def write(constraint: LlamaGrammar, text: bytes) -> LlamaGrammar:
    """Goes on with the bytes of a text, one token each."""
    for byte in text:
        token = np.array([constraint._tokens.plain_token(bytes([byte]))], np.int32)
        assert constraint.allows(token).all(), bytes([byte])
        constraint.accept(int(token[0]))
    return constraint


@pytest.mark.parametrize(
    ("text", "written", "forced", "following", "specials"),
    [
        ('root ::= "{\\"name\\":" " "? "1}"', b"", b'{"name":', b" 1", ()),
        ('root ::= "{\\"name\\":" " "? "1}"', b'{"name":', b"", None, ()),
        ('root ::= "{\\"name\\":" " "? "1}"', b'{"name":1', b"}", b"", (END,)),
        ('root ::= "the cat" | "the cow"', b"", b"the c", b"ao", ()),
        ('root ::= "the cat" | "the cats"', b"the c", b"at", b"s", (END,)),
        ('root ::= "a" | "ab" "c"', b"a", b"", b"b", (END,)),
        ('root ::= [a-z]{3} "-" [0-9]', b"abc", b"-", b"0123456789", ()),
        ('root ::= "größe" [c-e]', b"gr", "öße".encode(), b"cde", ()),
        ('root ::= "größe" [c-e]', b"gr\xc3", "öße".encode()[1:], b"cde", ()),
        ('root ::= "1é" | "1ê"', b"", b"1\xc3", b"\xa9\xaa", ()),
        (f'root ::= "ab" <[{TOOL_CALL}]> "cd"', b"", b"ab", b"", (TOOL_CALL,)),
        (f'root ::= "ab" (<[{TOOL_CALL}]> | "c")?', b"", b"ab", b"c", (END, TOOL_CALL)),
        (f'root ::= "ab" <[{IM_END}]>?', b"", b"ab", b"", (END, IM_END)),
        ('root ::= "ab" [^0-9]? "c"', b"", b"", None, ()),
        ('root ::= "x"{0,3} "yz"', b"xxx", b"yz", b"", (END,)),
        ('root ::= "x" | "y"', b"x", b"", b"", (END,)),
    ],
)
def test_what_is_forced_is_all_that_may_come(
    byte_grammars, text, written, forced, following, specials
) -> None:
    """Up to where there is a choice, an end or a special token; in a grammar with negated classes nothing."""
    constraint = write(byte_grammars.constrain(text), written)

    expected = None if following is None else frozenset(following)
    assert constraint.forced(64) == ForcedText(forced, expected, specials)
    assert constraint.forced(1).text == forced[:1]


def test_behind_a_special_token_text_is_forced_again(byte_grammars) -> None:
    """Where a special token may come beside text nothing is forced; behind it the text is."""
    constraint = byte_grammars.constrain(f'root ::= (<[{TOOL_CALL}]> "ab" | "text") "cd" "e"')

    assert constraint.forced(64) == ForcedText(b"", frozenset(b"t"), (TOOL_CALL,))
    assert constraint.allows(np.array([TOOL_CALL], np.int32)).all()
    constraint.accept(TOOL_CALL)
    assert constraint.forced(64) == ForcedText(b"abcde", frozenset(), (END,))


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"enum": ["Zoë", "Zoé", "Zora"]},
        "größe": {"type": "integer", "minimum": 100, "maximum": 120},
        "id": {"type": "string", "format": "date"},
        "more": {"type": "array", "items": {"const": "a longer text"}, "minItems": 2, "maxItems": 2},
    },
    "required": ["name", "größe", "id", "more"],
    "additionalProperties": False,
}


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), text=st.sampled_from([schema_to_gbnf(SCHEMA), json_object_gbnf()]))
def test_no_other_text_is_allowed(grammars, seed, text) -> None:
    """On a random way through a grammar: whatever token is allowed begins like what is forced, or it like the
    token.
    """
    constraint, source = grammars.constrain(text), random.Random(seed)
    everything = np.arange(len(constraint._tokens.pieces), dtype=np.int32)
    for _ in range(60):
        forced, following, specials = constraint.forced(64)
        allowed = everything[constraint.allows(everything)]
        ends = constraint._tokens.is_eog[allowed]
        pieces = [constraint._tokens.pieces[token] for token in allowed[~ends]]
        assert not forced or not ends.any()
        assert all(forced.startswith(piece) or piece.startswith(forced) for piece in pieces)
        if following is not None:
            behind = {piece[len(forced)] for piece in pieces if len(piece) > len(forced)}
            assert following >= behind if forced else following == behind
            assert (specials != ()) == ends.any() if not forced else True
        if ends.any():
            return
        constraint.accept(int(source.choice(allowed)))
