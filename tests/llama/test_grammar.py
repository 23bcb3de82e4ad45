"""llama.cpp's grammars as constraints: what they allow, what they refuse, and that no mistake ends the
process.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from b3node.engine.messages import Sampling
from b3node.engine.sampling.constrained import draw
from b3node.engine.sampling.constraint import ConstraintError
from b3node.gbnf import MAX_GRAMMAR_BYTES
from b3node.grammar import json_object_gbnf, schema_to_gbnf
from b3node.llama.grammar import Grammars
from b3node.llama.vocab import Vocabulary
from tests.llama.constrained import STRING, allowed, takes, write
from tests.llama.sentencepiece import sentencepiece_model
from tests.zoo.vocabulary import END_THINK, ENDOFTEXT, EOG, IM_END, IM_START, SPECIALS, THINK, base

# -------------------------------------------------------------------------------------------- what is allowed


def test_a_grammar_says_what_comes_next(grammars) -> None:
    """At each place exactly the tokens are allowed with which some text of the grammar goes on."""
    constraint = grammars.constrain('root ::= "the" | "to"')

    assert allowed(constraint) == {base().id(piece) for piece in ("t", "th", "the")}
    assert allowed(write(constraint, "t")) == {ord("h"), ord("o")}


def test_asking_changes_nothing(grammars) -> None:
    """A constraint stands where it stood, however often it is asked."""
    constraint = write(grammars.constrain(json_object_gbnf()), '{"a":')

    assert allowed(constraint) == allowed(constraint)


def test_the_end_comes_when_the_grammar_is_complete_and_nothing_else(grammars) -> None:
    """End-of-generation tokens are refused before the end; after it they alone are allowed."""
    constraint = grammars.constrain(json_object_gbnf())

    for text in ("{", '"a"', ":", "1"):
        assert not allowed(constraint) & EOG
        write(constraint, text)
    write(constraint, "}")

    assert allowed(constraint) == set(EOG)
    constraint.accept(IM_END)
    assert allowed(constraint) == set(EOG)


def test_where_the_end_is_one_of_several_ways(grammars) -> None:
    """A number may end or go on."""
    constraint = write(grammars.constrain("root ::= [0-9]+"), "12")

    assert allowed(constraint) == {*EOG, *range(ord("0"), ord("9") + 1)}


def test_special_tokens_are_not_text(grammars) -> None:
    """Inside a string every character of <|im_start|> and <think> may stand, and none of those tokens."""
    constraint = write(grammars.constrain(STRING), '"')

    assert not allowed(constraint) & {base().id(text) for text in SPECIALS}
    for text in SPECIALS:
        constraint = write(grammars.constrain(STRING), f'"{text}"')
        assert allowed(constraint) == set(EOG)


@pytest.mark.parametrize("token", [IM_START, THINK, END_THINK])
def test_special_tokens_are_not_allowed_by_their_text(grammars, token) -> None:
    """A grammar that spells a special token gets its characters."""
    text = base().join([token]).decode()
    constraint = grammars.constrain(f'root ::= "{text}"')

    assert allowed(constraint) == {ord("<")}


# ------------------------------------------------------------------------------------------------- text ahead


@pytest.mark.parametrize("text", [b"", b"{", b'{"a', b'{"a": "\xc3', b"[", b"{{", b'{"\x01', b'{"\xff'])
def test_what_stands_behind_a_text_is_what_accepting_it_gives(grammars, text) -> None:
    """A copy behind the text, or nothing where it is refused; the grammar itself stands where it stood."""
    constraint = grammars.constrain(json_object_gbnf())
    before, by_hand = allowed(constraint), grammars.constrain(json_object_gbnf())
    taken = all(takes(by_hand, byte) and not by_hand.accept(byte) for byte in text)

    behind = constraint.after(text)

    assert (behind is not None) == taken
    assert behind is None or allowed(behind) == allowed(by_hand)
    assert allowed(constraint) == before


def test_a_vocabulary_without_all_bytes_spells_with_what_it_has(grammars, monkeypatch) -> None:
    """Where a byte has no token of its own, the longest one that fits is taken."""
    constraint = grammars.constrain('root ::= "the" [a-z]*')
    monkeypatch.setattr(grammars.tokens, "_alone", {})

    behind = constraint.after(b"then")

    assert behind is not None
    assert ord("n") in allowed(behind)
    assert constraint.after(b"to") is None


# ------------------------------------------------------------------------------------------------- characters


@pytest.mark.parametrize("text", ["é", "ß", "中", "\U00012000", "😀", "\uffff", "\U0010ffff", "\x7f"])
def test_characters_come_byte_by_byte(grammars, text) -> None:
    """A character that is several tokens is allowed, and within it only what completes one."""
    constraint = write(grammars.constrain(STRING), '"')
    *head, last = text.encode()

    write(constraint, bytes(head))
    if head:
        assert allowed(constraint) <= set(range(0x80, 0xC0))
    write(constraint, bytes([last]))

    assert ord('"') in allowed(constraint)


@pytest.mark.parametrize(
    "sequence",
    [
        (0x80,),
        (0xC0,),
        (0xC1, 0xA8),
        (0xE0, 0x82, 0xA2),
        (0xED, 0xA0, 0x80),
        (0xF0, 0x80, 0x80, 0xAF),
        (0xF4, 0x90),
        (0xF5,),
        (0xFF,),
        (0xC3, 0x28),
        (0xE4, ord('"')),
        (0xC3, IM_END),
        (0x00,),
    ],
)
@pytest.mark.parametrize("grammar_text", [STRING, 'root ::= "\\"" [^"]* "\\""', 'root ::= "\\"" .* "\\""'])
def test_bytes_that_are_no_utf8_are_refused(grammars, sequence, grammar_text) -> None:
    """Overlong forms, surrogates, code points too large, stray and missing continuations, NUL: never
    allowed.
    """
    constraint = write(grammars.constrain(grammar_text), '"')

    assert not takes(constraint, *sequence)


def test_no_end_within_a_character(grammars) -> None:
    """Where the grammar could end, but half a character has been written, it cannot."""
    constraint = write(grammars.constrain("root ::= [a-z\\u00e0-\\u00ff]+"), b"a\xc3")

    assert allowed(constraint) == set(range(0xA0, 0xC0))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), bias=st.sampled_from([0.0, 4.0]))
def test_whatever_is_drawn_is_json_in_utf8(grammars, seed, bias) -> None:
    """Random logits over all tokens, those that are half characters too, give a JSON text that is UTF-8."""
    constraint = grammars.constrain(json_object_gbnf())
    source, numbers = random.Random(seed), np.random.default_rng(seed)
    text, token = b"", -1
    for _ in range(400):
        row = numbers.normal(0, 2, len(constraint._tokens.pieces)).astype(np.float32)
        row[[ord('"'), ord("}"), ord("]"), IM_END]] += 5
        row[0x80:0x100] += bias
        token = draw(row, constraint, Sampling(1.0, source.choice([1.0, 0.9]), seed=0), source)
        if token in EOG:
            break
        text += constraint._tokens.pieces[token]

    if token in EOG:
        assert isinstance(json.loads(text.decode()), dict)
    else:
        text.decode(errors="strict") if not constraint._partial else text[
            : -len(constraint._partial)
        ].decode()


# -------------------------------------------------------------------------------------------------- narrowing


@settings(max_examples=40, deadline=None)
@given(
    cut=st.integers(0, 60),
    text=st.sampled_from([json_object_gbnf(), STRING, 'root ::= "the" [a-z]* | "\\u4e2d"']),
)
def test_narrowing_loses_nothing(grammars, cut, text) -> None:
    """Every allowed token is among those that are left."""
    constraint = grammars.constrain(text)
    for byte in '{"a": [1, "h\\né中", true]}'.encode()[:cut]:
        if not constraint.allows(np.array([byte], np.int32))[0]:
            break
        constraint.accept(byte)

    narrowed = constraint.narrow()

    assert narrowed is None or allowed(constraint) <= set(narrowed.tolist())
    assert narrowed is None or len(set(narrowed.tolist())) == len(narrowed)


def test_narrowing_leaves_few_where_few_can_follow(grammars) -> None:
    """Where one character can follow, what is left begins with it, or ends the generation."""
    narrowed = grammars.constrain(json_object_gbnf()).narrow()

    assert narrowed is not None
    assert set(narrowed.tolist()) == {*EOG, ord("{"), base().id('{"')}


def test_narrowing_follows_the_text(grammars) -> None:
    """What was found is found again without asking, until the grammar has gone on."""
    constraint = grammars.constrain('root ::= "a" "b"')
    first = constraint.narrow()
    assert first is constraint.narrow()
    assert first is not None
    assert ord("a") in first

    write(constraint, "a")

    second = constraint.narrow()
    assert second is not None
    assert ord("b") in second
    assert ord("a") not in second


def test_negated_classes_are_not_narrowed(grammars) -> None:
    """llama.cpp's negated classes refuse bytes whose continuations they allow."""
    assert grammars.constrain("root ::= [^\\u00e9]+").narrow() is None


def test_vocabularies_with_byte_tokens(tmp_path_factory) -> None:
    """A SentencePiece vocabulary, with its spaces and `<0xC3>` tokens, writes any character of a string."""
    vocabulary = Vocabulary.load(str(sentencepiece_model(tmp_path_factory.mktemp("spm") / "tiny.gguf")))
    constraint = Grammars(vocabulary).constrain(STRING)
    by_piece = {piece: token for token, piece in enumerate(vocabulary.pieces)}

    for byte in '"é 中 a"'.encode():
        token = by_piece[bytes([byte])]
        narrowed = constraint.narrow()
        assert narrowed is None or token in narrowed
        assert takes(constraint, token)
        constraint.accept(token)

    assert allowed(constraint) == set(vocabulary.eog)


# --------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "# nothing\n",
        'root ::= "a',
        "root ::= undefined",
        'other ::= "a"',
        "root ::= root",
        'root ::= "a"\0',
        'root ::= "\\d"',
        'root ::= "a"{2001,}',
        'root ::= "a"{99999999}',
        'root ::= "' + "a" * MAX_GRAMMAR_BYTES + '"',
        "no grammar at all",
    ],
)
def test_what_is_no_grammar_is_an_error(grammars, text, capfd) -> None:
    """Never "no constraint", never a crash, and not a word of it on the terminal."""
    with pytest.raises(ConstraintError):
        grammars.constrain(text)

    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "text",
    [
        "root ::= " + "(" * 100_000 + '"a"' + ")" * 100_000,
        "\n".join(["root ::= r0", *(f"r{i} ::= r{i + 1}" for i in range(12_000)), 'r12000 ::= "a"']),
    ],
    ids=["groups", "rules"],
)
def test_deep_grammars_do_not_overflow_the_stack(grammars, text) -> None:
    """The deepest texts within the bound are parsed, or refused: the process lives."""
    assert len(text) <= MAX_GRAMMAR_BYTES
    try:
        grammars.constrain(text)
    except ConstraintError:
        pass
    else:
        assert allowed(grammars.constrain(text)) == {ord("a")}


def test_a_token_that_was_not_allowed_is_not_accepted(grammars) -> None:
    """Not one that was refused, none that nobody asked about, and none twice."""
    constraint = grammars.constrain(json_object_gbnf())
    with pytest.raises(ValueError, match="not allowed"):
        constraint.accept(ord("{"))
    assert constraint.allows(np.array([ord("{"), ord("["), IM_END, ENDOFTEXT], np.int32)).tolist() == [
        True, False, False, False,
    ]  # fmt: skip
    for token in (ord("["), IM_END):
        with pytest.raises(ValueError, match="not allowed"):
            constraint.accept(token)
    constraint.accept(ord("{"))
    with pytest.raises(ValueError, match="not allowed"):
        constraint.accept(ord("{"))


@pytest.mark.parametrize("asked", [[[97], [98], [97]], [[97, 98]], [[97], [98, 99]], [[98, 99], [97]]])
def test_whatever_was_allowed_may_be_accepted(grammars, asked) -> None:
    """Asked about alone or with others, first or last, once or twice: until something is accepted, and not
    longer.
    """
    for token in (97, 98):
        constraint = grammars.constrain("root ::= [ab]+")
        for tokens in asked:
            constraint.allows(np.array(tokens, np.int32))
        with pytest.raises(ValueError, match="not allowed"):
            constraint.accept(99)

        constraint.accept(token)

        with pytest.raises(ValueError, match="not allowed"):
            constraint.accept(token)


@pytest.mark.parametrize("written", [b"", b"a", b"\xe4", b"\xe4\xb8"])
def test_a_token_alone_is_judged_as_among_others(grammars, written) -> None:
    """Whether it is text, half a character, the end or a named token, behind a whole character or half of
    one.
    """
    constraint = write(grammars.constrain(f"root ::= [a-z\\u4e2d-\\uffff]* <[{END_THINK}]>?"), written)
    tokens = np.arange(len(constraint._tokens.pieces), dtype=np.int32)

    alone = [bool(constraint.allows(tokens[token : token + 1])[0]) for token in tokens]

    assert alone == constraint.clone().allows(tokens).tolist()


@pytest.mark.parametrize("token", [ord("x"), IM_END])
def test_llama_cpp_still_aborts_on_what_we_never_do(zoo, token) -> None:
    """Accepting what the grammar forbids ends the process: when this changes, this room can become
    simpler.
    """
    path = zoo.random("llama")
    program = f"""
        from b3node.llama.library import lib
        from b3node.llama.vocab import Vocabulary
        vocabulary = Vocabulary.load({str(path)!r})
        sampler = lib.llama_sampler_init_grammar(vocabulary.native, b'root ::= "a"', b"root")
        lib.llama_sampler_accept(sampler, {token})
        print("lives")
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False
    )

    assert ended.returncode < 0
    assert "lives" not in ended.stdout


# ------------------------------------------------------------------------------------------ with the compiler

SCHEMAS: dict[str, dict[str, object]] = {
    "person": {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    "colour": {"enum": ["red", "réd", 3, None]},
    "dates": {"type": "array", "items": {"type": "string", "format": "date"}, "maxItems": 3},
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_compiled_schemas_are_grammars(grammars, schema) -> None:
    """What the compiler writes is taken, and a text can be written to its end."""
    constraint = grammars.constrain(schema_to_gbnf(schema))
    source, text = random.Random(4), b""
    row = np.zeros(len(constraint._tokens.pieces), np.float32)
    row[[ord('"'), ord("}"), ord("]"), IM_END]] = 6
    for _ in itertools.repeat(None, 500):
        token = draw(row, constraint, Sampling(1.0, 1.0, seed=0), source)
        if token in EOG:
            break
        text += constraint._tokens.pieces[token]

    json.loads(text)
    assert token in EOG
