"""A guide keeps an answer to its outline: what it lets through, what it refuses, what it forces, and when."""

from __future__ import annotations

import random
from array import array
from collections import abc

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from b3node.dialects.dialect import GENERIC, Calls, Dialect, ObjectBody, Span
from b3node.dialects.outline import Outline, Reading, Thinking
from b3node.engine.guidance.repetition import MIN_LOOP_TOKENS, MIN_REPEATS
from b3node.engine.messages import Sampling
from b3node.engine.sampling.constrained import draw
from b3node.engine.sampling.constraint import ConstraintError, ForcedText
from b3node.engine.sampling.sampler import NoToken
from b3node.parse.channels import Channels
from tests.engine.fake_grammar import everything, new, token_table
from tests.engine.guidance.guides import (
    ALL,
    BODY,
    MARKED,
    PLAIN,
    TAGGED,
    TEXTS,
    THOUGHT,
    TOKEN_TABLE,
    allowed,
    forced,
    guide,
    outline,
    thinking,
    write,
)
from tests.engine.sampling.test_constrained import chi_square
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

# ------------------------------------------------------------------------------------------------ forced text


def test_text_is_forced_where_the_grammar_holds() -> None:
    """Not in free text; behind a call's marker, as far as the grammar leaves no choice."""
    guided = write(guide(outline(PLAIN, ALL, triggered=True), [BODY, BODY[:-1] + b" }"]), "so: ")

    assert guided.forced(64) == ForcedText()
    assert write(guided, TOOL_CALL).forced(64) == ForcedText(BODY[:-1], frozenset(b" }"))
    assert write(guided, BODY[:4]).forced(5) == ForcedText(BODY[4:9])


def test_nothing_is_forced_while_a_thought_may_begin_or_is_to_be_closed() -> None:
    """As long as both a thought and the answer may come, and where tokens are given, text is drawn."""
    opening = guide(outline(PLAIN, ALL, bound=thinking(1)), [BODY])

    assert opening.forced(64) == ForcedText()
    assert write(opening, BODY[:1]).forced(64).text == BODY[1:]
    assert write(guide(outline(PLAIN, ALL, bound=thinking(1)), [BODY]), THINK, "a").forced(64) == ForcedText()


# -------------------------------------------------------------------------------------------------- free text


def test_control_tokens_are_refused_in_free_text_and_the_end_is_not() -> None:
    """All that is text may be written, and nothing else but the end."""
    free = allowed(guide(outline(Dialect())))

    assert free == set(everything(TOKEN_TABLE).tolist()) - {
        0xFF,
        IM_START,
        THINK,
        END_THINK,
        TOOL_CALL,
        END_TOOL_CALL,
    }
    assert set(EOG) <= free


def test_special_tokens_of_the_dialect_may_be_written_and_are_marked() -> None:
    """Those of the outline and no others; the front is told their text behind a mark."""
    guided = guide(outline(PLAIN, ["<think>", "</think>"]))

    assert allowed(guided) & {base().id(text) for text in SPECIALS} == {THINK, END_THINK, *EOG}
    assert guided.marked == {THINK: b"\xff<think>", END_THINK: b"\xff</think>"}


def test_special_tokens_that_are_text_stay_text() -> None:
    """User-defined tokens that the dialect does not need are what they read."""
    lex = token_table(strict=False)

    assert {THINK, TOOL_CALL} <= allowed(guide(outline(Dialect()), lex=lex), lex)
    assert IM_START not in allowed(guide(outline(Dialect()), lex=lex), lex)


def test_what_would_be_read_as_a_mark_is_refused() -> None:
    """A token of a byte that no text has must not make a marker of the text behind it."""
    lex = token_table(b"\xff<", b"a\xff")

    assert not allowed(guide(outline(Dialect()), lex=lex), lex) & {0xFF, *new(lex, b"\xff<", b"a\xff")}


@pytest.mark.parametrize(("temperature", "top_p"), [(0.0, 1.0), (1.0, 1.0), (1.0, 0.9), (0.7, 0.5)])
def test_free_draws_have_the_distribution_of_masking_first(temperature, top_p) -> None:
    """Refused tokens, likely ones too, are as if they had never been there, and the row is as it was."""
    row = np.random.default_rng(2).normal(0, 2, len(TOKEN_TABLE.pieces)).astype(np.float32)
    row[[THINK, TOOL_CALL, IM_START]] = 9
    before, source, draws = row.copy(), random.Random(4), 1000
    counts = np.zeros(row.size)
    for _ in range(draws):
        counts[
            draw(row, guide(outline(PLAIN, ["<think>"])), Sampling(temperature, top_p, seed=0), source)
        ] += 1

    masked = np.full(row.size, -np.inf)
    may = sorted(allowed(guide(outline(PLAIN, ["<think>"]))))
    masked[may] = row[may]
    if not temperature:
        assert counts[masked.argmax()] == draws
        return
    order = np.argsort(-masked, kind="stable")
    weights = np.exp((masked[order] - masked.max()) / temperature)
    cumulative = np.cumsum(weights)
    weights[int(np.searchsorted(cumulative, top_p * cumulative[-1])) + 1 :] = 0
    expected = np.zeros(row.size)
    expected[order] = weights / weights.sum()
    assert chi_square(counts, expected * draws) < 5
    assert (row == before).all()


# --------------------------------------------------------------------------------------------------- thoughts


def test_a_thought_is_closed_when_its_tokens_are_spent() -> None:
    """What closes it is forced, token by token; then everything may be written again."""
    guided = write(guide(outline(bound=thinking(5, b"\n</think>\n"), thinking=True)), "abcde")

    assert forced(guided) == b"\n</think>\n"
    assert len(allowed(write(guided, "f"))) > 200


def test_a_thought_that_the_model_closes_is_not_closed_again() -> None:
    """The bound holds for thoughts alone."""
    guided = write(guide(outline(bound=thinking(15), thinking=True)), "abc</think>", "x" * 50)

    assert len(allowed(guided)) > 200


def test_a_thought_that_the_model_opens_itself_is_bounded() -> None:
    """Its tokens count from behind its marker, in all thoughts of an answer together."""
    guided = write(guide(outline(bound=thinking(10))), "<think>12345678")
    assert len(allowed(guided)) > 200
    write(guided, "9")
    assert len(allowed(guided)) > 200
    write(guided, "0")

    assert forced(guided) == b"</think>"
    assert forced(write(guided, "answer <think>")) == b"</think>"


def test_no_tokens_for_a_thought_close_it_at_once() -> None:
    """Where a template opens one whatever it is told."""
    assert forced(guide(outline(bound=thinking(0), thinking=True))) == b"</think>"


def test_specials_close_a_thought() -> None:
    """Where the dialect's marker is a token, that one is forced."""
    guided = guide(outline(PLAIN, ALL, bound=thinking(3, MARKED["</think>"]), thinking=True))
    write(guided, "ab</think>"[:3])

    assert allowed(guided) == {END_THINK}


def test_a_character_is_completed_before_a_thought_is_closed() -> None:
    """The bound waits for the rest of it, and not for what is no character."""
    guided = guide(outline(bound=thinking(2), thinking=True))
    write(guided, "a", b"\xe4\xb8")
    assert len(allowed(guided)) > 200
    write(guided, b"\xad")
    assert forced(guided) == b"</think>"

    broken = guide(outline(bound=thinking(2), thinking=True))
    assert forced(write(broken, b"a\xe4", b"a")) == b"</think>"
    stray = guide(outline(bound=thinking(2), thinking=True))
    assert forced(write(stray, b"\x80\x80")) == b"</think>"


def test_a_thought_that_goes_round_in_circles_is_closed() -> None:
    """As soon as it is seen, however many tokens are left; another thought is watched anew."""
    guided, said = guide(outline(bound=thinking(100_000), thinking=True)), 0
    while len(allowed(guided)) > 1:
        write(guided, "round and "[said % 10])
        said += 1

    assert MIN_LOOP_TOKENS <= said <= MIN_LOOP_TOKENS + 16
    assert forced(guided) == b"</think>"
    write(guided, "so <think>", "something else, ", "which does not repeat itself " * (MIN_REPEATS - 1))
    assert len(allowed(guided)) > 200


def test_an_answer_may_repeat_itself() -> None:
    """Tables, rulers and zeros are nobody's business outside of a thought."""
    assert len(allowed(write(guide(outline(bound=thinking(50))), "-" * 500))) > 200


def test_what_does_not_close_a_thought_is_tried_once() -> None:
    """A wrong table must not end in the same words again and again."""
    guided = write(guide(outline(bound=thinking(2, b"no!"), thinking=True)), "ab")

    assert forced(guided) == b"no!"
    assert len(allowed(write(guided, "x" * 40))) > 200


def test_an_answer_has_to_follow_where_it_must() -> None:
    """The model may not end inside the thought; behind it, it may."""
    guided = guide(outline(bound=thinking(), must=True, thinking=True))

    assert not allowed(write(guided, "hm")) & set(EOG)
    assert set(EOG) <= allowed(write(guided, "</think>"))
    assert set(EOG) <= allowed(guide(outline(bound=thinking(), thinking=True)))


# ---------------------------------------------------------------------------------- grammars of whole answers


def test_a_grammar_without_a_thought_holds_at_once() -> None:
    """From the first token on."""
    guided = guide(outline(Dialect()), [b"yes", b"no"])

    assert allowed(guided) == {ord("y"), ord("n")}
    assert allowed(write(guided, "no")) == set(EOG)


def test_a_grammar_holds_behind_a_thought() -> None:
    """Whoever closes it."""
    by_model = write(guide(outline(thinking=True, bound=thinking()), [b"yes", b"\nyes"]), "no no</think>")
    by_force = write(guide(outline(thinking=True, bound=thinking(2)), [b"yes", b"\nyes"]), "no")
    assert forced(by_force).startswith(b"</think>")

    assert allowed(by_model) == {ord("y"), ord("\n")}
    assert allowed(by_force) == {ord("y"), ord("\n")}


def test_a_token_with_bytes_behind_a_thought_needs_the_grammar() -> None:
    """They are the first ones of the answer."""
    guided = write(guide(outline(thinking=True, bound=thinking()), [b"yes", b"\nyes"]), "no</think")

    tokens = {text: new(TOKEN_TABLE, text)[0] for text in (">\n", ">\n\n", ">{", ">x")}
    assert allowed(guided) & set(tokens.values()) == {tokens[">\n"]}
    assert allowed(write(guided, tokens[">\n"])) == {ord("y")}


def test_what_is_forced_behind_a_thought_is_the_grammars_where_it_takes_it() -> None:
    """Where it does not, it is white space that nobody reads, and the grammar begins behind it."""
    taken = write(guide(outline(thinking=True, bound=thinking(1, b"</think>\n\n")), [b"\n\nyes"]), "a")
    assert forced(taken) == b"</think>\n\nyes"
    left = write(guide(outline(thinking=True, bound=thinking(1, b"</think>\n\n")), [b"\nyes"]), "a")
    assert forced(left) == b"</think>\n\n\nyes"


def test_a_thought_may_come_before_a_grammar_that_holds_at_once() -> None:
    """Where thoughts have a bound, the model may begin one itself; its marker or the grammar, nothing
    else.
    """
    for text, rest in (("yes", ""), ("<think>", "hm</think>yes")):
        guided = guide(outline(bound=thinking()), [b"yes", b"<text>"])
        assert allowed(guided) == {ord("y"), ord("<"), *new(TOKEN_TABLE, "<think")}
        write(guided, text, rest)
        assert allowed(guided) == set(EOG)
    guided = write(guide(outline(bound=thinking()), [b"yes", b"<text>"]), "<t")
    assert allowed(guided) == {ord("h"), ord("e")}
    assert allowed(write(guided, "e")) == {ord("x")}
    assert allowed(guide(outline(), [b"yes"])) == {ord("y")}


def test_a_special_token_may_open_the_thought() -> None:
    """That token or the grammar's; not the letters."""
    guided = guide(outline(PLAIN, ALL, bound=thinking()), [b"yes", MARKED["<tool_call>"] + b"x"])

    assert allowed(guided) == {ord("y"), THINK, TOOL_CALL}
    assert len(allowed(write(guided, THINK))) > 200
    assert allowed(write(guided, END_THINK)) == {ord("y"), TOOL_CALL}


def test_the_thoughts_marker_may_have_been_begun_by_the_prompt() -> None:
    """Then only the rest of it is written."""
    guided = guide(outline(bound=thinking(), begun=b"<th"), [b"yes"])

    assert allowed(write(guided, "ink")) == {
        ord(">"),
        *new(TOKEN_TABLE, ">\n", ">\n\n", ">{", '>{"name"', ">x"),
    }


def test_where_the_grammar_allows_nothing_the_answer_ends() -> None:
    """A dead end is told as one."""
    guided = write(guide(outline(triggered=True), []), "<tool_call")
    row = np.zeros(len(TOKEN_TABLE.pieces), np.float32)
    assert not allowed(guided) & set(new(TOKEN_TABLE, ">{", ">\n"))
    row[ord(">")] = 9

    assert draw(row, guided, Sampling(0.0, 1.0, seed=0), random.Random(1)) == ord(">")
    for temperature in (0.0, 1.0):
        assert draw(row, guided, Sampling(temperature, 1.0, seed=0), random.Random(1)) == NoToken.DEAD_END


# --------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    "wrong",
    [
        Outline(Reading(), specials=(65,)),
        Outline(Reading(), specials=(-1,)),
        Outline(Reading(), specials=(10**6,)),
        Outline(Reading(), thinking=Thinking(3, b"")),
        Outline(Reading(), thinking=Thinking(3, b"abc")),
        Outline(Reading(), thinking=Thinking(3, array("i", [-1]).tobytes())),
        Outline(Reading(), thinking=Thinking(3, array("i", [10**6]).tobytes())),
    ],
)
def test_outlines_that_cannot_be_kept_are_errors(wrong) -> None:
    """Never a crash later, never a free answer."""
    with pytest.raises(ConstraintError):
        guide(wrong)


def test_a_refused_token_is_not_accepted() -> None:
    """In no phase."""
    for guided in (
        guide(outline()),
        guide(outline(bound=thinking(0), thinking=True)),
        guide(outline(bound=thinking()), [b"yes"]),
        write(guide(outline(triggered=True), TEXTS), "<tool_call>"),
        write(guide(outline(triggered=True), []), "<tool_call>"),
    ):
        with pytest.raises(ValueError, match="was"):
            guided.accept(IM_START)


# ------------------------------------------------------------------------------------------------- properties

DIALECTS = {
    "plain": (PLAIN, ()),
    "specials": (PLAIN, ALL),
    "generic": (Dialect(thinking=THOUGHT, calls=GENERIC), ()),
    "spaced": (Dialect(thinking=THOUGHT, calls=Calls(ObjectBody(), section=Span("<tool_call>", ""), open=("k> ",))), ALL),
    "longer": (Dialect(thinking=THOUGHT, calls=TAGGED, also=(Calls(ObjectBody(), open=("<tool_call>\n\n",)),)), ()),
    "also": (Dialect(thinking=THOUGHT, calls=TAGGED, also=(Calls(ObjectBody(), open=("l>{",)),)), ()),
    "bare": (Dialect(thinking=THOUGHT, calls=TAGGED, also=(Calls(ObjectBody(), bare=True),)), ()),
}  # fmt: skip
OTHERS = [[b"x", b"{x}", b'{"name": "x"}', b'{ "name":"xx"}']]
LIKELY = [
    *map(ord, "<tolcahink_/> \n`{x"),
    *new(
        TOKEN_TABLE,
        "<think",
        "<tool_call",
        "k>",
        "l>",
        ">\n",
        ">\n\n",
        ">{",
        '>{"name"',
        ">x",
        '<tool_call>{"',
    ),
    *new(TOKEN_TABLE, "a<tool_call>{", "a<tool_call>x"),
    *(THINK, END_THINK, TOOL_CALL, END_TOOL_CALL, IM_END, ENDOFTEXT),
]


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_no_text_gets_past_the_grammar(name, data) -> None:
    """At each step the tokens that are let through are those behind which the text is still one of the
    outline.

    Judged by reading all that was written with a scanner of its own: behind the call's marker, or the
    thought, stands what the grammar takes. What is said to be refused is refused, and what narrowing leaves
    out too.
    """
    dialect, specials = DIALECTS[name]
    triggered = data.draw(st.booleans())
    bound = thinking(
        data.draw(st.sampled_from([0, 3, 20, 1000])), MARKED["</think>"] if specials else b"</think>"
    )
    thinks = data.draw(st.booleans())
    outlined = outline(
        dialect, specials, triggered=triggered, bound=bound if thinks else None, thinking=thinks
    )
    guided = guide(outlined, TEXTS, others=OTHERS)
    written, source = b"", random.Random(data.draw(st.integers(0, 2**32)))
    for _ in range(40):
        may = guided.allows(everything(TOKEN_TABLE))
        refused, narrowed = guided.refused(), guided.narrow()
        if refused is not None:
            assert sorted(refused.tolist()) == np.flatnonzero(~may).tolist()
            some = source.sample(LIKELY, 8)
            assert may[some].tolist() == [judged(outlined, written, token) for token in some]
        assert narrowed is None or set(np.flatnonzero(may).tolist()) <= set(narrowed.tolist())
        choice = [token for token in LIKELY if may[token]] or np.flatnonzero(may).tolist()
        token = source.choice(choice)
        guided.accept(token)
        if token in EOG:
            return
        written += guided.marked.get(token) or TOKEN_TABLE.pieces[token]
        assert judged(outlined, written)


def judged(outlined: Outline, written: bytes, token: int | None = None) -> bool:
    """Whether `written`, and a token behind it, is the beginning of a text that the outline takes."""
    if token is not None:
        if token in EOG:
            return True
        if token in TOKEN_TABLE.marked and token not in outlined.specials:
            return False
        written += TOKEN_TABLE.marked.get(token) or TOKEN_TABLE.pieces[token]
    found = grammar_text(outlined, written)
    return found is None or any(text.startswith(found[1]) for text in found[0])


def grammar_text(outlined: Outline, written: bytes) -> tuple[abc.Sequence[bytes], bytes] | None:
    """The texts of the grammar that holds, and what stands there; None if none holds yet."""
    channels = Channels(outlined.reading)
    for at in range(len(written)):
        if not outlined.triggered and not channels.thinking:
            return TEXTS, written[at:]
        told = channels.feed(written[at : at + 1])
        if outlined.triggered and channels.place == "call":
            texts = TEXTS if channels.calls == outlined.reading.dialect.calls else OTHERS[0]
            return texts, b"".join(data for channel, data in told if channel == "call") + written[at + 1 :]
    return (TEXTS, b"") if not outlined.triggered and not channels.thinking else None
