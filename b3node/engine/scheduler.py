"""Decides, step by step, who computes what: the heart of the engine, without a model, a clock or I/O.

There is no prefill phase and no decode phase. A sequence has tokens known and tokens computed; whoever is
behind catches up under one budget a step: running streams first (one token each), then prompts in the
order of their admission, as much as the governor allows. `plan` gives the step as a value, `apply` takes
in what the model said and gives what the front must hear.

What is promised, and how:

* A running sequence is never dropped for a new one. Admission promises it its prompt and its reserve of
  output; a sequence that outgrows its reserve may, when cells run out, be paused: its cells go, its tokens
  stay, and it is computed again later. The client sees a pause.
* First come first served, with a fair share: among those waiting, the one whose namespace runs least goes
  next; within a namespace, order of arrival.
* Prompts that begin alike are computed once: a prompt reads what another slot has computed, and waits for
  a running prompt that is still computing the part they share.
* Waiting is bounded in number and in time; who cannot be served hears `capacity`.
* A cancelled sequence's cells are free at the next step; a prompt that was being computed is kept.

Invariants (`check`): every slot is free, running or kept; a running sequence has something to compute and
holds exactly what it computed; promised cells never exceed what exists.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence as Many
from typing import Final

import numpy as np

from b3node.engine.cells import Cells, Match
from b3node.engine.constraint import Constraint
from b3node.engine.governor import Governor
from b3node.engine.limits import Limits
from b3node.engine.messages import Finished, FinishReason, Started, Step, Submit, Token
from b3node.engine.plan import Chunk, Plan
from b3node.engine.runs import Ids, common_prefix
from b3node.engine.sampling import BROKEN
from b3node.engine.sequence import Sequence
from b3node.engine.shelf import Shelf

WORTH_WAITING: Final = 4
"""Shared tokens for which a prompt waits until another one has computed them: a wait costs a step or two,
not waiting costs the tokens once more for every prompt that begins alike."""

POINT_EVERY: Final = 256
"""Generated tokens after which the state of a stateful model is copied, so that an answer that is sent back
slightly changed is not computed again as a whole."""
GROWTH: Final = 256
"""Tokens that a paused sequence is promised beyond those it has, when it comes back."""


class Scheduler:
    """The state of an engine's requests. All methods mutate it unless they say otherwise.

    Args:
        limits: bounds, fixed for its life.
        eog: ids that end a generation.
        pieces: the bytes of each token id.
        governor: gives the prompt tokens a step may compute.
    """

    def __init__(
        self, limits: Limits, *, eog: frozenset[int], pieces: Many[bytes], governor: Governor
    ) -> None:
        self.limits = limits
        shelf = Shelf(budget=limits.shelf, token_bytes=limits.token_bytes, state_bytes=limits.state_bytes)
        self.cells = Cells(limits.cells, shelf, stateful=limits.stateful)
        self.governor = governor
        self.waiting: deque[Sequence] = deque()
        self.running: dict[int, Sequence] = {}
        self._eog = eog
        self._pieces = pieces
        self._slots = list(range(limits.slots - 1, -1, -1))
        self._started: list[Started] = []
        self._finished: list[Finished] = []

    # -- what the front says -------------------------------------------------------------------------

    def submit(self, submit: Submit, now: float, constraint: Constraint | None = None) -> None:
        """Queues a sequence, or finishes it at once.

        As `capacity` when the queue is full; as `failed` when it cannot be computed, or has a grammar and no
        constraint that keeps it.
        """
        sequence = Sequence.of(submit, n_ctx=self.limits.n_ctx, now=now, constraint=constraint)
        known = sequence.known
        if (
            (submit.grammar is not None and constraint is None)
            or not 0 < len(known) < self.limits.n_ctx
            or min(known) < 0
            or max(known) >= len(self._pieces)
        ):
            self._report(sequence, "failed", now)
        elif len(self.waiting) >= self.limits.waiting:
            self._report(sequence, "capacity", now)
        else:
            self.waiting.append(sequence)

    def cancel(self, request: int, now: float) -> None:
        """Ends a sequence wherever it stands; unknown ids are ignored."""
        for sequence in (*self.waiting, *self.running.values()):
            if sequence.id == request:
                self._leave(sequence, "cancelled", now)
                return

    # -- one step ------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether a step would bring nothing; changes nothing."""
        return not (self.running or self.waiting or self.cells.moves or self._finished)

    def plan(self, now: float) -> Plan:
        """What the next step is to do; admits, pauses and expires sequences on the way."""
        self._expire(now)
        self._admit(now)
        self._cool()
        chunks = self._chunks()
        while self._lacking(chunks) and self._pause():
            chunks = self._chunks()
        return Plan(self.cells.take_moves(), tuple(chunks))

    def apply(self, plan: Plan, drawn: Mapping[int, int], *, now: float, seconds: float) -> Step:
        """Takes in a computed plan: `drawn` maps a slot to its new token (or `BROKEN`).

        `seconds` is how long the step took. Returns all that the front must hear.
        """
        tokens: list[Token] = []
        for chunk in plan.chunks:
            sequence = self.running[chunk.slot]
            sequence.computed += len(chunk.tokens)
            self.cells.extend(chunk.slot, chunk.tokens)
            if self.limits.stateful and self._worth_a_point(sequence):
                self.cells.point(chunk.slot)
            if chunk.logits:
                self._take(sequence, drawn[chunk.slot], tokens, now)
        self._observe(plan, seconds)
        return self._step(tokens, seconds)

    def draws(self, plan: Plan) -> list[Sequence]:
        """The sequences whose rows the plan asks for, in the order of the rows; changes nothing."""
        return [self.running[chunk.slot] for chunk in plan.chunks if chunk.logits]

    def lose(self, plan: Plan, *, now: float) -> Step:
        """Takes in a step that failed half-way: all sequences in it fail, their cells are worth nothing."""
        for chunk in plan.chunks:
            sequence = self.running.pop(chunk.slot)
            self._report(sequence, "failed", now)
            self._free(chunk.slot, shelve=False)
        return self._step([], 0.0)

    def shrink(self, plan: Plan, *, now: float) -> Step:
        """Takes in that a step did not fit: keeps nothing, pauses the youngest of it, or ends the only one."""
        while (victim := self.cells.victim()) is not None:
            self._free(victim, shelve=True)
        youngest = self.running[plan.chunks[-1].slot]
        if len(plan.chunks) > 1:
            self._requeue(youngest)
        else:
            self._leave(youngest, "capacity", now)
        return self._step([], 0.0)

    def check(self) -> None:
        """Raises `ValueError` unless every invariant holds; changes nothing."""
        self.cells.check()
        owned = sorted((*self._slots, *self.running, *self.cells.kept))
        if owned != list(range(self.limits.slots)):
            raise ValueError("a slot is lost or owned twice")
        for slot, sequence in self.running.items():
            if sequence.slot != slot or self.cells.length(slot) != sequence.computed or not sequence.pending:
                raise ValueError("a running sequence does not hold what it computed")
        if any(sequence.slot != -1 for sequence in self.waiting):
            raise ValueError("a waiting sequence has a slot")

    # -- admission -----------------------------------------------------------------------------------

    def _expire(self, now: float) -> None:
        for sequence in [s for s in self.waiting if s.deadline <= now and not s.paused]:
            self._leave(sequence, "capacity", now)

    def _admit(self, now: float) -> None:
        """Moves waiting sequences into slots while there is room, the fairest first."""
        held_back: set[int] = set()
        while len(self.running) < self.limits.parallel and (sequence := self._next(held_back)):
            known = np.frombuffer(sequence.known, np.int32)[:-1].copy()
            match = self.cells.match(sequence.namespace, known)
            if self._leader_ahead(sequence, known, match.length):
                held_back.add(sequence.id)
            elif self._fits(sequence, match):
                self._enter(sequence, known, match, now)
            else:
                return

    def _next(self, held_back: set[int]) -> Sequence | None:
        """The waiting sequence to go next: paused ones first, then whose namespace runs least."""
        load: dict[str, int] = {}
        for running in self.running.values():
            load[running.namespace] = load.get(running.namespace, 0) + 1
        candidates = (s for s in self.waiting if s.id not in held_back)
        return min(
            candidates, key=lambda s: (not s.paused, load.get(s.namespace, 0), s.arrived), default=None
        )

    def _enter(self, sequence: Sequence, known: Ids, match: Match, now: float) -> None:
        """Puts a waiting sequence into a slot that reads what was matched."""
        slot = self._slot(spare=self.cells.resident_tip(match))
        match = self._room_to_load(sequence, known)
        self.cells.enter(slot, sequence.namespace, match)
        self.waiting.remove(sequence)
        self.running[slot] = sequence
        sequence.slot, sequence.computed = slot, match.length
        if not sequence.paused:
            sequence.admitted, sequence.cached = now, match.length
            self._started.append(Started(sequence.id, now - sequence.arrived, match.length))
        sequence.paused = False

    def _room_to_load(self, sequence: Sequence, known: Ids) -> Match:
        """What can be read once there is room to bring it back; nothing, where no room can be made.

        Making room may forget what was matched before, so it is matched anew.
        """
        while True:
            match = self.cells.match(sequence.namespace, known)
            if self.cells.to_load(match) <= self.cells.free:
                return match
            victim = self.cells.victim(spare=self.cells.resident_tip(match))
            if victim is None:
                return Match()
            self._free(victim, shelve=True)

    def _leader_ahead(self, sequence: Sequence, known: Ids, matched: int) -> bool:
        """Whether a running prompt of the same namespace is about to compute much more of `known`."""
        for leader in self.running.values():
            if leader.namespace == sequence.namespace and leader.pending > 1:
                ahead = self._enterable(leader, common_prefix(np.frombuffer(leader.known, np.int32), known))
                if ahead > max(matched, leader.computed) and ahead - matched >= WORTH_WAITING:
                    return True
        return False

    def _enterable(self, leader: Sequence, common: int) -> int:
        """How far a follower will be able to enter what its leader computes; changes nothing."""
        if not self.limits.stateful:
            return common
        return max((mark for mark in leader.marks if mark <= common), default=0)

    def _fits(self, sequence: Sequence, match: Match) -> bool:
        """Whether the cells promised to the running ones and to `sequence` exist; changes nothing."""
        future = sum(max(s.promised - s.computed, 0) for s in self.running.values())
        wanted = sequence.promised - match.resident + self.cells.newly_locked(match)
        return self.cells.locked + future + wanted <= self.limits.cells

    def _slot(self, *, spare: int) -> int:
        """A free slot; the least recently used kept one, but not `spare`, is given up when there is none."""
        if not self._slots:
            victim = self.cells.victim(spare=spare)
            if victim is None:
                raise RuntimeError("fewer slots than running sequences and one")
            self._free(victim, shelve=True)
        return self._slots.pop()

    def _cool(self) -> None:
        """Beside running sequences, keeps no more finished cells in the cache than are worth their cost."""
        while self.running and self.cells.used - self.cells.locked > self.limits.hot:
            victim = self.cells.victim()
            if victim is None:
                return
            self._free(victim, shelve=True)

    # -- the step's chunks ---------------------------------------------------------------------------

    def _chunks(self) -> list[Chunk]:
        """Streams first, one token each; then prompts in order of admission, within the allowance."""
        streams = [s for s in self.running.values() if s.pending == 1]
        chunks = [self._chunk(s, 1) for s in streams]
        room = min(self.governor.allowance(streams=len(streams)), self.limits.batch - len(chunks))
        for sequence in self.running.values():
            size = min(sequence.pending, room, self._to_next_mark(sequence))
            if sequence.pending > 1 and size > 0:
                chunks.append(self._chunk(sequence, size))
                room -= size
        return chunks

    def _to_next_mark(self, sequence: Sequence) -> int:
        """Tokens up to the next place where the state is to be copied: a chunk must end there."""
        if not self.limits.stateful:
            return sequence.pending
        ahead = (mark - sequence.computed for mark in sequence.marks if mark > sequence.computed)
        return next(ahead, sequence.pending)

    def _worth_a_point(self, sequence: Sequence) -> bool:
        """Whether someone may want to go on from where a sequence stands now."""
        generated = sequence.computed - sequence.prompt
        return sequence.computed in sequence.marks or (generated > 0 and generated % POINT_EVERY == 0)

    def _chunk(self, sequence: Sequence, size: int) -> Chunk:
        start = sequence.computed
        tokens = sequence.known[start : start + size]
        return Chunk(sequence.slot, start, tokens, logits=size == sequence.pending)

    def _lacking(self, chunks: list[Chunk]) -> bool:
        """Whether the chunks need cells that do not exist even after giving up every kept slot."""
        wanted = sum(len(chunk.tokens) for chunk in chunks)
        while wanted > self.cells.free:
            victim = self.cells.victim()
            if victim is None:
                return True
            self._free(victim, shelve=True)
        return False

    def _pause(self) -> bool:
        """Pauses the youngest sequence that outgrew its promise; False when there is none."""
        grown = [s for s in self.running.values() if len(s.known) > s.reserve] or list(self.running.values())
        if len(self.running) < 2:
            return False
        self._requeue(max(grown, key=lambda s: s.arrived))
        return True

    # -- ends ----------------------------------------------------------------------------------------

    def _take(self, sequence: Sequence, token: int, tokens: list[Token], now: float) -> None:
        """Appends a drawn token to its sequence and ends it where it ends."""
        if token == BROKEN:
            self._leave(sequence, "failed", now)
            return
        sequence.known.append(token)
        if sequence.generated == 1:
            sequence.first_token = now
        if token in self._eog:
            self._leave(sequence, "stop", now)
            return
        tokens.append(Token(sequence.id, self._pieces[token]))
        if len(sequence.known) >= sequence.limit:
            self._leave(sequence, "length", now)

    def _leave(self, sequence: Sequence, reason: FinishReason, now: float) -> None:
        """Ends a waiting or running sequence; what it computed is kept where prefixes can be shared."""
        self._report(sequence, reason, now)
        if sequence.slot < 0:
            self.waiting.remove(sequence)
            return
        del self.running[sequence.slot]
        if reason == "failed":
            self._free(sequence.slot, shelve=False)
            return
        if self.limits.stateful:
            self.cells.point(sequence.slot)
        if not self.cells.keep(sequence.slot):
            self._slots.append(sequence.slot)

    def _free(self, slot: int, *, shelve: bool) -> None:
        """Gives a slot back; with `shelve`, what it held can be had again from host memory."""
        self.cells.release(slot, shelve=shelve)
        self._slots.append(slot)

    def _requeue(self, sequence: Sequence) -> None:
        """Pauses a running sequence: its tokens stay, its cells go, and it is the first to go on.

        Its promise grows, so that it comes back only to room in which it can go on for a while.
        """
        del self.running[sequence.slot]
        if self.limits.stateful:
            self.cells.point(sequence.slot)
        self._free(sequence.slot, shelve=True)
        sequence.slot, sequence.computed, sequence.paused = -1, 0, True
        sequence.reserve = min(len(sequence.known) + GROWTH, sequence.limit)
        self.waiting.appendleft(sequence)

    def _report(self, sequence: Sequence, reason: FinishReason, now: float) -> None:
        started = sequence.admitted or now
        first = sequence.first_token or now
        self._finished.append(
            Finished(
                id=sequence.id,
                reason=reason,
                prompt_tokens=sequence.prompt,
                processed_tokens=min(sequence.computed, sequence.prompt),
                cached_tokens=sequence.cached,
                output_tokens=sequence.generated,
                prefill_seconds=first - started,
                decode_seconds=now - first,
            )
        )

    def _observe(self, plan: Plan, seconds: float) -> None:
        streams = sum(1 for chunk in plan.chunks if len(chunk.tokens) == 1)
        self.governor.observe(prompt_tokens=plan.tokens - streams, streams=streams, seconds=seconds)

    def _step(self, tokens: list[Token], seconds: float) -> Step:
        step = Step(
            started=tuple(self._started),
            tokens=tuple(tokens),
            finished=tuple(self._finished),
            running=len(self.running),
            waiting=len(self.waiting),
            seconds=seconds,
        )
        self._started, self._finished = [], []
        return step
