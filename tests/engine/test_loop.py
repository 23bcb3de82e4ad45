"""The loop with grammars: they stay with their sequences, and cost nobody else anything."""

from __future__ import annotations

from array import array

import msgspec
import pytest

from b3node.dialects.dialect import Dialect, Span
from b3node.dialects.outline import Outline, Reading, Thinking
from b3node.engine.guidance.token_table import TokenTable
from b3node.engine.messages import Sampling
from b3node.engine.sampling.constraint import ConstraintError
from b3node.engine.speculation.drafter import Drafter
from tests.engine.fake_backend import EOG, N_VOCAB, continuation
from tests.engine.fake_constraint import FakeConstraint
from tests.engine.rig import Rig, said, submit

EVEN, ODD = range(0, EOG, 2), range(1, EOG, 2)
ANY = range(N_VOCAB)


class Constraints:
    """Makes the constraints of a rig; a grammar is its name here."""

    def __init__(self, rig: Rig, **grammars: FakeConstraint) -> None:
        self.made: list[str] = []
        self._grammars = grammars
        rig.loop._constrain = self

    def __call__(self, grammar: str) -> FakeConstraint:
        self.made.append(grammar)
        if grammar not in self._grammars:
            raise ConstraintError(grammar)
        return self._grammars[grammar]


def constrained(request, tokens, grammar, sampling=None, **options):
    """A request with a grammar."""
    asked = msgspec.structs.replace(submit(request, tokens, **options), grammar=grammar)
    return asked if sampling is None else msgspec.structs.replace(asked, sampling=sampling)


@pytest.mark.parametrize("sampling", [None, Sampling(1.0, 1.0, 7), Sampling(1.0, 0.9, 7)])
def test_a_grammar_is_kept_and_ends_its_sequence(sampling) -> None:
    """What comes is what the constraint went on with, each allowed in its place, and then the end."""
    rig, grammar = Rig(), FakeConstraint(*[EVEN, ODD] * 5, {EOG})
    Constraints(rig, g=grammar)

    rig.step(constrained(1, [3, 1, 4], "g", sampling, max_tokens=50))
    rig.drain()

    assert list(rig.text[1]) == grammar.accepted[:-1]
    assert [token % 2 for token in rig.text[1]] == [0, 1] * 5
    assert rig.finished[1].reason == "stop"
    assert rig.finished[1].output_tokens == 11


def test_a_cut_is_a_cut() -> None:
    """A limit of tokens ends a constrained sequence where it stands."""
    rig = Rig()
    Constraints(rig, g=FakeConstraint(*[EVEN] * 50))

    rig.step(constrained(1, [3, 1, 4], "g", max_tokens=5))
    rig.drain()

    assert rig.finished[1].reason == "length"
    assert len(rig.text[1]) == 5


def test_free_sequences_beside_it_are_not_disturbed() -> None:
    """Sequences without a grammar say what they say alone."""
    rig, prompts = Rig(), {number: [number, 7, number] for number in range(1, 6)}
    Constraints(rig, g=FakeConstraint(*[EVEN] * 8, {EOG}))

    rig.step(*(submit(number, prompt) for number, prompt in prompts.items()), constrained(9, [5], "g"))
    rig.drain()

    assert {number: rig.text.get(number, b"") for number in prompts} == {
        number: said(prompt, 8) for number, prompt in prompts.items()
    }


def test_where_nothing_is_allowed_the_sequence_fails_alone() -> None:
    """A dead end costs its own request; what it said so far was said."""
    rig = Rig(price=1.0)
    Constraints(rig, g=FakeConstraint(EVEN, EVEN))

    rig.step(constrained(1, [3, 1, 4], "g"), submit(2, [2, 7, 1]))
    rig.drain()

    assert (rig.finished[1].reason, len(rig.text[1])) == ("failed", 2)
    assert rig.text[2] == said([2, 7, 1], 8)
    assert rig.backend.computed == 3 + 2 + 3 + len(continuation([2, 7, 1], 8)) - 1  # nothing twice


def test_a_grammar_that_cannot_be_had_fails_its_request() -> None:
    """Never a free answer in its place; nothing is computed for it."""
    rig, alone = Rig(), Rig()
    constraints = Constraints(rig)
    alone.step(submit(2, [2, 7, 1]))
    alone.drain()

    rig.step(constrained(1, [3, 1, 4], "missing"), submit(2, [2, 7, 1]))
    rig.drain()

    assert constraints.made == ["missing"]
    assert rig.finished[1].reason == "failed"
    assert rig.finished[1].output_tokens == 0
    assert rig.backend.computed == alone.backend.computed
    assert rig.text[2] == said([2, 7, 1], 8)


def test_engines_without_grammars_refuse_them() -> None:
    """Unless it is given something that makes constraints, a loop fails what needs one."""
    rig = Rig()
    rig.step(constrained(1, [3, 1, 4], "g"))
    rig.drain()

    assert rig.finished[1].reason == "failed"


def test_a_paused_sequence_keeps_its_place() -> None:
    """Cells run out, sequences are computed again, and no token is accepted twice or lost."""
    rig = Rig(cells=64, n_ctx=64, parallel=4)
    grammars = {f"g{number}": FakeConstraint(*[EVEN, ODD] * 15) for number in range(4)}
    Constraints(rig, **grammars)
    asked = [constrained(number, [number] * 8, f"g{number}", max_tokens=30, reserve=2) for number in range(4)]

    rig.step(*asked)
    paused = 0
    for _ in range(500):
        if rig.scheduler.idle:
            break
        paused += any(sequence.paused for sequence in rig.scheduler.waiting)
        rig.step()

    assert paused
    for number in range(4):
        assert rig.finished[number].reason == "length"
        assert list(rig.text[number]) == grammars[f"g{number}"].accepted
        assert [token % 2 for token in rig.text[number]] == [0, 1] * 15


def test_a_step_that_did_not_fit_moves_no_grammar() -> None:
    """A step without a draw accepts nothing; the sequence goes on from where it stood."""
    rig, grammar = Rig(), FakeConstraint(*[EVEN, ODD] * 5, {EOG})
    Constraints(rig, g=grammar)
    rig.step(constrained(1, [3, 1, 4], "g", max_tokens=50), submit(2, [1], max_tokens=50))
    rig.step()
    rig.faults = ["full"]
    rig.drain()

    assert rig.finished[1].reason == "stop"
    assert list(rig.text[1]) == grammar.accepted[:-1]


# ------------------------------------------------------------------------------------------------------
# outlines

TOKEN_TABLE = TokenTable([bytes([i]) for i in range(N_VOCAB)], {}, (), {EOG})
CLOSING = [60, 47, 62]
MARKER = bytes(CLOSING).decode()
THINKING = Reading(Dialect(thinking=Span("", MARKER)), thinking=True)
BOUNDED = Outline(THINKING, thinking=Thinking(4, array("i", CLOSING).tobytes()))


def outlined(request, tokens, outline, grammar=None, **options):
    """A request with an outline."""
    return msgspec.structs.replace(submit(request, tokens, **options), outline=outline, grammar=grammar)


def test_an_outline_is_kept_and_others_are_not_disturbed() -> None:
    """The thought is closed in its place; who runs beside it says what it says alone."""
    rig = Rig()
    rig.loop._token_table = TOKEN_TABLE

    rig.step(outlined(1, [3, 1, 4], BOUNDED, max_tokens=20), submit(2, [2, 7, 1]))
    rig.drain()

    said_freely = bytes(continuation([3, 1, 4], 4))
    assert rig.text[1][:7] == said_freely + bytes(CLOSING)
    assert rig.text[2] == said([2, 7, 1], 8)


@pytest.mark.parametrize(
    "wrong",
    [Outline(Reading(), specials=(3,)), Outline(THINKING, thinking=Thinking(3, b""))],
)
def test_an_outline_that_cannot_be_kept_fails_its_request(wrong) -> None:
    """Never a free answer in its place; nothing is computed for it."""
    rig = Rig()
    rig.loop._token_table = TOKEN_TABLE

    rig.step(outlined(1, [3, 1, 4], wrong), submit(2, [2, 7, 1]))
    rig.drain()

    assert (rig.finished[1].reason, rig.finished[1].output_tokens) == ("failed", 0)
    assert rig.text[2] == said([2, 7, 1], 8)


def test_an_outline_without_its_grammar_fails_its_request() -> None:
    """Where the grammar cannot be had, the rest of the outline is not kept in its place."""
    rig = Rig()
    rig.loop._token_table = TOKEN_TABLE

    rig.step(outlined(1, [3, 1, 4], BOUNDED, "missing"))
    rig.drain()

    assert rig.finished[1].reason == "failed"


def test_engines_without_a_token_table_refuse_outlines() -> None:
    """Unless it is given what tokens say, a loop fails what needs it."""
    rig = Rig()
    rig.step(outlined(1, [3, 1, 4], BOUNDED))
    rig.drain()

    assert rig.finished[1].reason == "failed"


def test_a_paused_sequence_keeps_its_place_in_its_outline() -> None:
    """Computed again, a thought is not counted again, and what was forced is not forced again."""
    rig, roomy = Rig(cells=64, n_ctx=64, parallel=4), Rig()
    for each in (rig, roomy):
        each.loop._token_table = TOKEN_TABLE
        thoughts = (outlined(n, [n] * 8, BOUNDED, max_tokens=30, reserve=2) for n in range(1, 5))
        each.step(*thoughts)
    roomy.drain()
    paused = 0
    for _ in range(500):
        if rig.scheduler.idle:
            break
        paused += any(sequence.paused for sequence in rig.scheduler.waiting)
        rig.step()

    assert paused
    for number in range(1, 5):
        assert rig.text[number][4:7] == bytes(CLOSING)
    assert rig.text == roomy.text


def test_the_front_hears_of_a_step_before_the_engine_learns_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning takes as long as a draw, and whoever sends the tokens has a core to itself meanwhile."""
    rig, order = Rig(), []

    def noted(owner, method, word):
        carried_out = getattr(owner, method)

        def call(*arguments):
            order.append(word)
            return carried_out(*arguments)

        monkeypatch.setattr(owner, method, call)

    noted(rig, "send", "told")
    noted(Drafter, "feed", "fed")
    noted(rig.scheduler.token_budget, "observe", "observed")

    rig.step(submit(1, [3, 1, 4]))
    rig.step()

    assert order == ["told", "fed", "observed", "told"]
