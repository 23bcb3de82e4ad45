"""The engine's one loop: hear, plan, compute, draw, tell.

It owns the order of things and nothing else: what to compute is the scheduler's, how is the backend's, and
the channel to the front and the clock are given. A step that failed costs its sequences, a row that is not
a distribution or a grammar that cannot be kept costs its sequence, and anything that cannot be survived is left
to the process: the front restarts it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence as Many
from typing import Protocol

from b3node.dialects.outline import begun_as
from b3node.engine.backend import Backend, CellsFullError, DecodeError, Rows
from b3node.engine.guidance.guide import Guide
from b3node.engine.guidance.jump_forward import JumpForward
from b3node.engine.guidance.token_table import TokenTable
from b3node.engine.messages import Cancel, Step, Submit
from b3node.engine.plan import Plan
from b3node.engine.sampling.constrained import draw
from b3node.engine.sampling.constraint import Constrain, Constraint, ConstraintError, Grammar, unable
from b3node.engine.sampling.sampler import LogitRow, NoToken, greedy
from b3node.engine.schedule.scheduler import Scheduler
from b3node.engine.schedule.sequence import Sequence


class Channel(Protocol):
    """The engine's end of the line to the front."""

    def receive(self, *, wait: bool) -> Many[object] | None:
        """Messages that have come; with `wait`, blocks until there is one. None when the front is gone."""
        ...

    def send(self, step: Step) -> None:
        """Tells the front of a step; blocks while the front does not read."""
        ...


class Loop:
    """Runs a scheduler on a backend until the front is gone.

    Args:
        clock: monotonic seconds.
        constrain: makes constraints of grammars.
        lexicon: the model's, for guides; without one no outline can be kept.
        jump: writes what is forced; without one it is drawn token by token.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        backend: Backend,
        channel: Channel,
        clock: Callable[[], float],
        constrain: Constrain = unable,
        token_table: TokenTable | None = None,
        jump_forward: JumpForward | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._backend = backend
        self._channel = channel
        self._clock = clock
        self._constrain = constrain
        self._token_table = token_table
        self._jump_forward = jump_forward
        self._unsent: list[Step] = []

    def run(self) -> None:
        """Serves until the channel says that the front is gone. Raises `ValueError` on a broken invariant."""
        while self.receive():
            self.step()

    def receive(self) -> bool:
        """Takes in what the front has said; waits for it when there is nothing to do. False: the front is gone."""
        idle = self._scheduler.idle
        if idle:
            self._send()
            self._scheduler.check()
            self._backend.rest()
        messages = self._channel.receive(wait=idle)
        if messages is None:
            return False
        now = self._clock()
        for message in messages:
            match message:
                case Submit():
                    constraint = self._constraint(message)
                    pieces = constraint.marked if isinstance(constraint, Guide) else None
                    self._scheduler.submit(message, now, constraint, pieces)
                case Cancel():
                    self._scheduler.cancel(message.id)
        return True

    def _constraint(self, submit: Submit) -> Constraint | None:
        """What keeps a sequence to its grammar and outline; None where it has none, and where it cannot be had."""
        try:
            grammar = None if submit.grammar is None else self._constrain(submit.grammar)
            if submit.outline is None or self._token_table is None:
                return None if submit.outline else grammar
            return Guide(submit.outline, self._token_table, grammar, self._grammar_of_calls(submit.grammar))
        except ConstraintError:
            return None

    def _grammar_of_calls(self, grammar: str | None) -> Callable[[int], Grammar]:
        """What `Guide` takes for calls in other spellings."""
        return lambda which: self._constrain(begun_as(grammar or "", which))

    def step(self) -> None:
        """One step of the model, drawn and accounted for.

        What it brought is told at once, or, where the device computes beside us, while the next step runs.
        """
        plan = self._scheduler.plan(self._clock())
        self._unsent.append(self._run_plan(plan))
        if not self._backend.overlaps:
            self._send()

    def _run_plan(self, plan: Plan) -> Step:
        begun = self._clock()
        try:
            self._backend.start(plan)
            self._send()
            rows = self._backend.rows()
        except CellsFullError:
            return self._scheduler.on_cache_full(plan)
        except DecodeError:
            return self._scheduler.on_decode_error(plan)
        drawn = self._draw(plan, rows)
        return self._scheduler.apply(plan, drawn, seconds=self._clock() - begun)

    def _draw(self, plan: Plan, rows: Rows) -> dict[int, Many[int]]:
        """The new tokens for each slot that asked for rows."""
        drawn: dict[int, Many[int]] = {}
        at = 0
        for sequence, chunk in self._scheduler.draws(plan):
            drawn[chunk.slot] = self._tokens_after(sequence, chunk.draft, rows[at : at + chunk.rows])
            at += chunk.rows
        return drawn

    def _tokens_after(self, sequence: Sequence, draft: Many[int], rows: Rows) -> Many[int]:
        """The tokens that follow in a sequence: as long as they are those that were drafted, there is a row for the next.

        A row behind a token that was not drawn says nothing, and is not looked at; so a draft decides how many tokens a
        step brings, and none of them.
        """
        tokens = self._first_tokens(sequence, rows[0])
        while len(tokens) <= len(draft) and tokens == draft[: len(tokens)]:
            tokens += self._drawn_tokens(sequence, rows[len(tokens)])
        return tokens

    def _first_tokens(self, sequence: Sequence, row: LogitRow) -> array[int]:
        """What follows first: what an answer must begin with, or what is drawn."""
        constraint, jump_forward = sequence.constraint, self._jump_forward
        if constraint is None or jump_forward is None or sequence.generated or greedy(row) == NoToken.BROKEN:
            return self._drawn_tokens(sequence, row)
        return array("i", jump_forward.advance(constraint)) or self._drawn_tokens(sequence, row)

    def _drawn_tokens(self, sequence: Sequence, row: LogitRow) -> array[int]:
        """A drawn token, and what is forced behind it.

        Whether something is forced is asked wherever a token was drawn, so a seed repeats an answer.
        """
        tokens = array("i", (draw(row, sequence.constraint, sequence.sampling, sequence.rng),))
        if sequence.constraint is not None and self._jump_forward is not None and tokens[0] >= 0:
            tokens.extend(self._jump_forward.advance(sequence.constraint))
        return tokens

    def _send(self) -> None:
        """Tells the front what it has not heard yet."""
        for step in self._unsent:
            self._channel.send(step)
        self._unsent.clear()
