"""Special tokens that llama.cpp's grammars name: told from their text, whatever the grammar."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from b3node.engine.messages import Sampling
from b3node.engine.sampling.constrained import draw
from b3node.engine.sampling.constraint import ConstraintError
from b3node.llama.grammar import LlamaGrammar
from b3node.llama.special_token_chars import STAND_INS
from tests.llama.constrained import allowed, takes, write
from tests.zoo.vocabulary import (
    END_THINK,
    END_TOOL_CALL,
    ENDOFTEXT,
    EOG,
    IM_END,
    IM_START,
    SPECIALS,
    THINK,
    TOOL_CALL,
    base,
)


def spelled(constraint: LlamaGrammar, *parts: str | int) -> LlamaGrammar:
    """Goes on with texts, byte by byte, and tokens."""
    for part in parts:
        if isinstance(part, str):
            write(constraint, part)
        else:
            assert takes(constraint, part), part
            constraint.accept(part)
    return constraint


def test_a_named_token_is_that_token_alone(grammars) -> None:
    """A grammar that names a special token gets it, never its characters, and nothing else goes on."""
    constraint = grammars.constrain(f'root ::= <[{TOOL_CALL}]> "a"+ <[{END_TOOL_CALL}]>?')

    assert allowed(constraint) == {TOOL_CALL}
    assert allowed(spelled(constraint, TOOL_CALL)) == {ord("a")}
    assert allowed(spelled(constraint, "aa")) == {ord("a"), END_TOOL_CALL, *EOG}
    assert allowed(spelled(constraint, END_TOOL_CALL)) == set(EOG)


@pytest.mark.parametrize(
    "text",
    [
        "[^<]*",
        "[^\\u00e9]*",
        ".*",
        "[ -~]*",
        "[\\x00-\\U0010FFFF]*",
        "[\\u0001-~]*",
        "[\1-\37/-z]*",
        '("\\x01" | [/-z])*',
    ],
)  # fmt: skip
def test_a_named_token_ends_text_that_may_hold_its_characters(grammars, text) -> None:
    """Where any text may stand, the token is the token: what it ends has ended."""
    constraint = grammars.constrain(f"root ::= {text} <[{END_TOOL_CALL}]>")

    spelled(constraint, "/tool_call>", END_TOOL_CALL)

    assert allowed(constraint) == set(EOG)


def test_other_special_tokens_stay_refused(grammars) -> None:
    """Those that the grammar does not name are not text of it, wherever it stands."""
    constraint = grammars.constrain(f"root ::= <[{THINK}]> .* <[{END_THINK}]> .*")
    for _ in range(2):
        specials = allowed(constraint) & {base().id(text) for text in SPECIALS}
        assert specials == {THINK}
        spelled(constraint, THINK)
        assert allowed(constraint) & {THINK, END_THINK, TOOL_CALL, IM_START} == {END_THINK}
        constraint = grammars.constrain(f"root ::= <[{THINK}]> .* <[{END_THINK}]> .*")


def test_an_end_of_generation_may_be_named(grammars) -> None:
    """Where a family ends a call with one, the grammar asks for it, and takes no other end there."""
    constraint = grammars.constrain(f'root ::= "a" <[{ENDOFTEXT}]>')

    assert not allowed(constraint) & EOG
    assert allowed(spelled(constraint, "a")) == {ENDOFTEXT}
    constraint.accept(ENDOFTEXT)
    assert allowed(constraint) == set(EOG)


def test_named_tokens_are_among_what_narrowing_leaves(grammars) -> None:
    """Each once, ends of generation too."""
    constraint = grammars.constrain(f'root ::= <[{TOOL_CALL}]> | <[{IM_END}]> | "x"')

    narrowed = constraint.narrow()

    assert narrowed is not None
    assert set(narrowed.tolist()) >= allowed(constraint) == {TOOL_CALL, IM_END, ord("x")}
    assert len(set(narrowed.tolist())) == len(narrowed)


def test_what_looks_like_a_name_inside_a_literal_is_text(grammars) -> None:
    """A client's words in a literal, a class or a comment name nothing."""
    constraint = grammars.constrain(f'root ::= "<[{THINK}]>\\"<[1]>" [<[2\\]>] # <[{END_THINK}]> <x>\n')

    write(constraint, f'<[{THINK}]>"<[1]>]')

    assert allowed(constraint) == set(EOG)


@pytest.mark.parametrize(
    "text",
    [
        "root ::= <[65]>",
        "root ::= <[999999999]>",
        "root ::= <[-1]>",
        "root ::= <think>",
        f"root ::= !<[{THINK}]>",
        "root ::= <[",
    ],
)
def test_names_that_mean_no_special_token_are_refused(grammars, text) -> None:
    """Plain tokens, none at all, tokens by their text and negated ones: no grammar, and no crash."""
    with pytest.raises(ConstraintError):
        grammars.constrain(text)
    assert not grammars.runs(text)


def test_more_names_than_can_be_told_apart_are_refused(grammars, monkeypatch) -> None:
    """There are as many as there are characters to stand for them."""
    monkeypatch.setattr(grammars.tokens, "stand_ins", grammars.tokens.stand_ins[:2])
    three = f"root ::= <[{THINK}]> <[{END_THINK}]> <[{TOOL_CALL}]>"

    assert allowed(grammars.constrain(f"root ::= <[{THINK}]> <[{END_THINK}]>")) == {THINK}
    with pytest.raises(ConstraintError):
        grammars.constrain(three)


@pytest.mark.parametrize(
    "text", ["[\\x00-\\x1f]", "[\\t\\n\\r\\x0B]", "[\\u0009-\\u000D]", '"\\t" | "\\x0A" | "\\r"']
)
def test_white_space_is_no_stand_in(grammars, text) -> None:
    """Tab, line feed and carriage return are text in grammars that name tokens as in all others."""
    constraint = grammars.constrain(f"root ::= ({text}) <[{THINK}]>")

    assert allowed(constraint) == {ord("\t"), ord("\n"), ord("\r")}


@pytest.mark.parametrize("text", ["[\\x01-\\x08]", "[\\x1F]", '"\\x01"', '"a\\U00000001"', '"\1"'])
def test_texts_with_control_characters_cannot_be_written_beside_named_tokens(grammars, text) -> None:
    """They are no texts any more, and no token stands for them."""
    constraint = grammars.constrain(f'root ::= {text} | "b" <[{THINK}]>')

    assert THINK not in allowed(constraint)
    assert allowed(constraint) <= {ord("a"), ord("b"), base().id("an"), base().id("as")}
    assert constraint.after(b"a\1") is None


@pytest.mark.parametrize("character", STAND_INS)
def test_plain_text_has_no_character_that_stands_for_a_token(grammars, character) -> None:
    """Not even where a grammar would take it: it could not be told from the token."""
    assert character not in allowed(grammars.constrain("root ::= [\\x01-\\x7f]*"))


def test_no_named_token_within_a_character(grammars) -> None:
    """Half a character has to be completed first."""
    constraint = write(grammars.constrain(f"root ::= .* <[{END_THINK}]>"), b"\xc3")

    assert allowed(constraint) == set(range(0x80, 0xC0))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    text=st.sampled_from([
        f"root ::= (<[{TOOL_CALL}]> [a-c]{{1,3}} <[{END_TOOL_CALL}]>){{1,3}}",
        f'root ::= <[{THINK}]> [ -~]{{0,4}} <[{END_THINK}]> "x"',
        f"root ::= ([a-c] | <[{THINK}]> | <[{IM_END}]>)*",
    ]),
)  # fmt: skip
def test_texts_with_named_tokens_never_leave_their_grammar(grammars, seed, text) -> None:
    """Whatever is drawn, the tokens' order is one that the grammar has, and llama.cpp never aborts."""
    constraint, source = grammars.constrain(text), random.Random(seed)
    row = np.random.default_rng(seed).normal(0, 1, len(constraint._tokens.pieces)).astype(np.float32)
    row[[THINK, END_THINK, TOOL_CALL, END_TOOL_CALL, IM_END]] += 5
    written = b""
    for _ in range(60):
        token = draw(row, constraint, Sampling(1.0, 1.0, seed=0), source)
        if token in EOG:
            break
        written += constraint._tokens.pieces[token] if token < THINK else f"[{token}]".encode()

    pattern = {
        "root ::= (": rb"(\[%d\][abc]{0,3}(\[%d\])?){0,3}" % (TOOL_CALL, END_TOOL_CALL),
        "root ::= <": rb"(?s:\[%d\].{0,16}(\[%d\]x?)?)" % (THINK, END_THINK),
        "root ::= ([": rb"([abc]|\[%d\])*" % THINK,
    }
    begin = max((key for key in pattern if text.startswith(key)), key=len)
    assert re.fullmatch(pattern[begin], written)
