"""The engine's one loop: receive, plan, compute, draw, send.

It owns the order of the steps and nothing else: the scheduler decides the plan, the backend carries it out,
and the channel to the front and the clock are given. A failed step costs its sequences; a row that is not a
distribution, or a grammar that cannot be enforced, costs its sequence. Any other error ends the process, and
the front restarts it.
"""

from __future__ import annotations

from array import array
from collections import abc
from collections.abc import Callable
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
    """The engine's end of the connection to the front."""

    def receive(self, *, wait: bool) -> abc.Sequence[object] | None:
        """Returns the messages that have come; with `wait`, blocks until there is one.

        None once the front is gone.
        """
        ...

    def send(self, step: Step) -> None:
        """Sends a step to the front; blocks while the front does not read."""
        ...


class Loop:
    """Runs a scheduler on a backend until the front is gone.

    Args:
        clock: monotonic seconds.
        constrain: makes constraints of grammars.
        token_table: the model's, for guides; without one no outline can be enforced.
        jump_forward: appends forced text; without one it is drawn token by token.
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
        """Passes the front's messages to the scheduler; waits for one if there is nothing to do.

        Returns False once the front is gone.
        """
        idle = self._scheduler.idle
        if idle:
            self._send()
            self._scheduler.check()
            self._backend.on_idle()
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
        """Returns the constraint of a submitted sequence; None if it has none, or if it cannot be made."""
        try:
            grammar = None if submit.grammar is None else self._constrain(submit.grammar)
            if submit.outline is None or self._token_table is None:
                return None if submit.outline else grammar
            return Guide(submit.outline, self._token_table, grammar, self._grammar_of_calls(submit.grammar))
        except ConstraintError:
            return None

    def _grammar_of_calls(self, grammar: str | None) -> Callable[[int], Grammar]:
        """Returns the function that makes the grammar of calls in another spelling, for `Guide`."""
        return lambda which: self._constrain(begun_as(grammar or "", which))

    def step(self) -> None:
        """Runs one step of the model, draws, and accounts for the result.

        The step is sent at once, or, if the device computes in parallel, while the next step runs.
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

    def _draw(self, plan: Plan, rows: Rows) -> dict[int, abc.Sequence[int]]:
        """Returns the new tokens of each slot that asked for rows."""
        drawn: dict[int, abc.Sequence[int]] = {}
        at = 0
        for sequence, chunk in self._scheduler.draws(plan):
            drawn[chunk.slot] = self._tokens_after(sequence, chunk.draft, rows[at : at + chunk.rows])
            at += chunk.rows
        return drawn

    def _tokens_after(self, sequence: Sequence, draft: abc.Sequence[int], rows: Rows) -> abc.Sequence[int]:
        """Returns the tokens that follow in a sequence: one row's, and the next one's while the draft agrees.

        A row after a drafted token that was not drawn means nothing and is not looked at. So a draft decides
        how many tokens a step brings, and never which.
        """
        tokens = self._first_tokens(sequence, rows[0])
        while len(tokens) <= len(draft) and tokens == draft[: len(tokens)]:
            tokens += self._drawn_tokens(sequence, rows[len(tokens)])
        return tokens

    def _first_tokens(self, sequence: Sequence, row: LogitRow) -> array[int]:
        """Returns the first tokens of an answer: the forced beginning, else a drawn token."""
        constraint, jump_forward = sequence.constraint, self._jump_forward
        if constraint is None or jump_forward is None or sequence.generated or greedy(row) == NoToken.BROKEN:
            return self._drawn_tokens(sequence, row)
        return array("i", jump_forward.advance(constraint)) or self._drawn_tokens(sequence, row)

    def _drawn_tokens(self, sequence: Sequence, row: LogitRow) -> array[int]:
        """Draws a token and appends the text that is forced after it.

        Whether text is forced is asked after every drawn token, so a seed repeats an answer.
        """
        tokens = array("i", (draw(row, sequence.constraint, sequence.sampling, sequence.rng),))
        if sequence.constraint is not None and self._jump_forward is not None and tokens[0] >= 0:
            tokens.extend(self._jump_forward.advance(sequence.constraint))
        return tokens

    def _send(self) -> None:
        """Sends the steps that the front has not received yet."""
        for step in self._unsent:
            self._channel.send(step)
        self._unsent.clear()
