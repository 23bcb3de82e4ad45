"""Decides, step by step, who computes what: the heart of the engine, without a model, a clock or I/O.

There is no prefill phase and no decode phase. A sequence has tokens known and tokens computed; whoever is
behind catches up under one budget a step: running streams first (one token each, and what was forced behind it as
far as it fits), then prompts in the order of their admission, as much as the governor allows. `plan` gives the
step as a value, `apply` takes in what the model said and gives what the front must hear.

What is promised, and how:

* A running sequence is never dropped for a new one. Admission promises it its prompt and its reserve of output; one
  that outgrows its reserve may, when cells run out, be paused: its cells go, its tokens stay, it is computed again.
* First come first served, with a fair share: among those waiting, the one whose namespace runs least goes
  next; within a namespace, order of arrival.
* Prompts that begin alike are computed once: a prompt reads what another slot has computed, and waits for
  a running prompt that is still computing the part they share.
* Waiting is bounded in number and in time; who cannot be served hears `capacity`.
* A cancelled sequence's cells are free at the next step; a prompt that was being computed is kept.

Invariants (`check`): every slot is free, running or kept; a running sequence has something to compute and holds exactly
what it computed; promised cells never exceed what exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence as Many
from typing import Final

import numpy as np

from b3node.engine.cache.eviction import EvictionPolicy
from b3node.engine.cache.host_cache import HostCache
from b3node.engine.cache.prefix_cache import Match, PrefixCache
from b3node.engine.cache.prefix_tree import Ids
from b3node.engine.limits import EngineLimits
from b3node.engine.messages import FinishReason, Step, Submit
from b3node.engine.plan import Chunk, Plan
from b3node.engine.sampling.constraint import Constraint
from b3node.engine.sampling.sampler import NoToken
from b3node.engine.schedule.chunking import Chunker
from b3node.engine.schedule.queue import Queue
from b3node.engine.schedule.sequence import Sequence
from b3node.engine.schedule.shared_prefill import is_prefilling_shared
from b3node.engine.schedule.sliding_window import SlidingWindows
from b3node.engine.schedule.step_report import StepReport
from b3node.engine.schedule.token_budget import MeasuredStep, TokenBudget
from b3node.engine.speculation.drafter import Drafter, DrafterFactory

FOLLOWER_GRACE_SECONDS: Final = 1.0
"""Seconds that whoever follows a leader may still wait for a slot once the leader has computed the common part."""
RESUME_RESERVE_TOKENS: Final = 256
"""Tokens that a paused sequence is promised beyond those it has, when it comes back."""


class Scheduler:
    """The state of an engine's requests. All methods mutate it unless they say otherwise.

    Args:
        limits: bounds, fixed for its life.
        eog: ids that end a generation.
        pieces: the bytes of each token id.
        governor: gives the tokens a step may compute, and what they cost.
    """

    def __init__(
        self, limits: EngineLimits, *, eog: frozenset[int], pieces: Many[bytes], token_budget: TokenBudget
    ) -> None:
        self.limits = limits
        host_cache = HostCache(
            budget=limits.host_cache, token_bytes=limits.token_bytes, state_bytes=limits.state_bytes
        )
        self.cells = PrefixCache(limits.cells, host_cache, stateful=limits.stateful)
        self.token_budget = token_budget
        self._windows = SlidingWindows(limits, self.cells)
        self._eviction = EvictionPolicy(limits, self.cells)
        self._chunker = Chunker(limits, token_budget, self._windows, eog)
        self.waiting = Queue(limits.waiting)
        self.running: dict[int, Sequence] = {}
        self._drafts = DrafterFactory()
        self._fresh: list[Drafter] = []  # of the sequences that the last step brought something
        self._measured: MeasuredStep | None = None
        self._eog = eog
        self._pieces = pieces
        self._slots = list(range(limits.slots - 1, -1, -1))
        self._report = StepReport()

    # -- what the front says -------------------------------------------------------------------------

    def submit(self, submit: Submit, now: float, constraint: Constraint | None = None) -> None:
        """Queues a sequence, or finishes it at once.

        As `capacity` when the queue is full; as `failed` when it cannot be computed, or has a grammar or an outline
        and no constraint that keeps it.
        """
        sequence = Sequence.of(submit, n_ctx=self.limits.n_ctx, now=now, constraint=constraint)
        known = sequence.known
        if (
            (constraint is None and (submit.grammar is not None or submit.outline is not None))
            or not 0 < len(known) < self.limits.n_ctx
            or min(known) < 0
            or max(known) >= len(self._pieces)
        ):
            self._report.finished(sequence, "failed")
        elif self.waiting.full:
            self._report.finished(sequence, "capacity")
        else:
            if self.limits.drafts:
                sequence.drafter = self._drafts.of((sequence.namespace, sequence.sampling.greedy), known)
            self.waiting.append(sequence)

    def cancel(self, request: int) -> None:
        """Ends a sequence wherever it stands; unknown ids are ignored."""
        for sequence in (*self.waiting, *self.running.values()):
            if sequence.id == request:
                self._finish(sequence, "cancelled")
                return

    # -- one step ------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether a step would bring nothing; changes nothing."""
        busy = self.running or self.waiting or self.cells.moves or self._report.news
        return not busy and not self._eviction.untidy

    def plan(self, now: float) -> Plan:
        """What the next step is to do; admits, pauses and expires sequences on the way."""
        self._learn()
        for sequence in self.waiting.expired(now):
            self._finish(sequence, "capacity")
        if not self.running:
            self.cells.total = self.limits.cells
        came = len(self.running)
        self._admit(now)
        for victim in self._eviction.given_up(running=bool(self.running), entered=len(self.running) > came):
            self._free(victim, save=True)
        chunks = self._chunks()
        while self._lacking(chunks) and self._pause():
            chunks = self._chunks()
        return Plan(self.cells.take_moves(), tuple(chunks))

    def apply(self, plan: Plan, drawn: Mapping[int, Many[int]], *, seconds: float) -> Step:
        """Takes in a computed plan: `drawn` maps a slot to its new tokens, the last of which may be `NoToken.BROKEN` or `NoToken.DEAD_END`.

        The first is drawn from the slot's row, or forced; those behind it are forced, or drawn from the rows behind
        drafted tokens. `seconds` is how long the step took. Returns all that the front must hear.
        """
        broken: list[Sequence] = []
        prompt_tokens = 0
        for chunk in plan.chunks:
            sequence = self.running[chunk.slot]
            prompt_tokens += 0 if sequence.answering else len(chunk.tokens)
            tokens = drawn[chunk.slot] if chunk.logits else ()
            self._computed(sequence, chunk, tokens)
            if not self._append_all(sequence, tokens):
                broken.append(sequence)
        self.cells.total = max(self.cells.total, min(self.cells.used, self.limits.cells))  # seen to fit
        if broken:
            self._recompute(broken)
        if not plan.copies:
            self._measured = MeasuredStep(prompt_tokens, plan.tokens - prompt_tokens, seconds)
        return self._step(seconds)

    def _learn(self) -> None:
        """Learns from the last step, once the front was told of it: the clients' work then goes on beside ours."""
        for drafter in self._fresh:
            drafter.feed()
        self._fresh.clear()
        if self._measured is not None:
            self.token_budget.observe(self._measured)
            self._measured = None

    def draws(self, plan: Plan) -> list[tuple[Sequence, Chunk]]:
        """The sequences that the plan asks rows for, in the order of the rows, with their chunks; changes nothing."""
        return [(self.running[chunk.slot], chunk) for chunk in plan.chunks if chunk.logits]

    def on_decode_error(self, plan: Plan) -> Step:
        """Takes in a step that failed half-way: nothing that the cache holds is worth anything any more."""
        self._recompute([self.running[chunk.slot] for chunk in plan.chunks])
        return self._step(0.0)

    def on_cache_full(self, plan: Plan) -> Step:
        """Takes in that a step did not fit: what is kept goes, else the youngest pauses, or the only one ends.

        The books are then wrong about the cache; they count on what was seen not to fit until nothing runs.
        """
        self.cells.total = min(self.cells.total, self.cells.used + max(plan.tokens - 1, 0))
        youngest = self.running[plan.chunks[-1].slot]
        if plan.drafted:
            return self._step(0.0)  # there is no room for as many guesses
        if self.cells.kept:
            self._keep_nothing()
        elif len(plan.chunks) > 1:
            self._requeue(youngest)
        else:
            self._finish(youngest, "capacity")
        return self._step(0.0)

    def _keep_nothing(self) -> None:
        while (victim := self.cells.victim()) is not None:
            self._free(victim, save=True)

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

    def _admit(self, now: float) -> None:
        """Moves waiting sequences into slots while there is room, the fairest first."""
        held_back: set[int] = set()
        while len(self.running) < self.limits.parallel and (
            sequence := self.waiting.next(self.running.values(), held_back)
        ):
            known = np.frombuffer(sequence.known, np.int32)[:-1].copy()
            match = self.cells.match(sequence.namespace, known)
            if is_prefilling_shared(
                self.running.values(), sequence, known, match.length, stateful=self.limits.stateful
            ):
                held_back.add(sequence.id)
                sequence.deadline = max(
                    sequence.deadline, now + FOLLOWER_GRACE_SECONDS
                )  # it waits for its own good
            elif self._fits(sequence, match):
                self._enter(sequence, known, match, now)
            else:
                return

    def _enter(self, sequence: Sequence, known: Ids, match: Match, now: float) -> None:
        """Puts a waiting sequence into a slot that reads what was matched."""
        slot = self._slot(spare=self.cells.resident_slot(match))
        self._make_room_for_windows(sequence)
        match = self._room_to_load(sequence, known)
        self.cells.enter(slot, sequence.namespace, match)
        self.waiting.remove(sequence)
        self.running[slot] = sequence
        sequence.slot, sequence.computed = slot, match.length
        if not sequence.paused:
            sequence.cached = match.length
            self._report.started(sequence, now)
        sequence.paused = False

    def _make_room_for_windows(self, sequence: Sequence) -> None:
        """Gives up kept slots until the windows of all readers fit beside that of a new one."""
        while self._windows.crowded(self.running.values(), sequence):
            victim = self.cells.victim()
            if victim is None:
                return
            self._free(victim, save=True)

    def _room_to_load(self, sequence: Sequence, known: Ids) -> Match:
        """What can be read once there is room to bring it back; nothing, where no room can be made.

        Making room may forget what was matched before, so it is matched anew.
        """
        while True:
            match = self.cells.match(sequence.namespace, known)
            if self.cells.to_load(match) <= self.cells.free:
                return match
            victim = self.cells.victim(spare=self.cells.resident_slot(match))
            if victim is None:
                return Match()
            self._free(victim, save=True)

    def _fits(self, sequence: Sequence, match: Match) -> bool:
        """Whether the cells promised to the running ones and to `sequence` exist; changes nothing."""
        future = sum(max(s.promised - s.computed, 0) for s in self.running.values())
        wanted = sequence.promised - match.resident + self.cells.newly_locked(match)
        if not self._windows.fit(self.running.values(), sequence):
            return False
        return self.cells.locked + future + wanted <= self.cells.total

    def _slot(self, *, spare: int) -> int:
        """A free slot; the least recently used kept one, but not `spare`, is given up when there is none."""
        if not self._slots:
            victim = self.cells.victim(spare=spare)
            if victim is None:
                raise RuntimeError("fewer slots than running sequences and one")
            self._free(victim, save=True)
        return self._slots.pop()

    # -- making room -----------------------------------------------------------------------------------

    def _chunks(self) -> list[Chunk]:
        return self._chunker.chunks(self.running.values(), self.cells.free)

    def _lacking(self, chunks: list[Chunk]) -> bool:
        """Whether the chunks need cells that do not exist even after giving up every kept slot."""
        wanted = sum(len(chunk.tokens) for chunk in chunks)
        while wanted > self.cells.free:
            victim = self.cells.victim()
            if victim is None:
                return True
            self._free(victim, save=True)
        return False

    def _pause(self) -> bool:
        """Pauses the youngest sequence that outgrew its promise; False when there is none."""
        grown = [s for s in self.running.values() if len(s.known) > s.reserve] or list(self.running.values())
        if len(self.running) < 2:
            return False
        self._requeue(max(grown, key=lambda s: s.arrived))
        return True

    # -- ends ----------------------------------------------------------------------------------------

    def _computed(self, sequence: Sequence, chunk: Chunk, tokens: Many[int]) -> None:
        """A chunk was computed, behind which `tokens` follow: what was drafted and is not among them is forgotten."""
        right = chunk.right(tokens)
        sequence.computed += right
        self.cells.extend(chunk.slot, chunk.tokens[:right])
        if right < len(chunk.tokens):
            self.cells.trim(chunk.slot)
        if self._chunker.is_checkpoint(sequence):
            self.cells.checkpoint(chunk.slot)

    def _append_all(self, sequence: Sequence, tokens: Many[int]) -> bool:
        """Appends new tokens to their sequence, and ends it where it ends; False where one is `NoToken.BROKEN`."""
        if sequence.drafter is not None and tokens:
            self._fresh.append(sequence.drafter)
        for token in tokens:
            if token == NoToken.BROKEN:
                return False
            if (reason := self._append(sequence, token)) is not None:
                self._finish(sequence, reason)
                break
        return True

    def _append(self, sequence: Sequence, token: int) -> FinishReason | None:
        """Appends a token to its sequence; why the sequence ends with it, None if it does not."""
        if token == NoToken.DEAD_END:
            return "failed"
        sequence.append(token)
        if token in self._eog:
            return "stop"
        self._report.token(sequence, sequence.marked.get(token) or self._pieces[token])
        return "length" if len(sequence.known) >= sequence.limit else None

    def _finish(self, sequence: Sequence, reason: FinishReason) -> None:
        """Ends a waiting or running sequence; what it computed is kept where prefixes can be shared."""
        self._report.finished(sequence, reason)
        if sequence.slot < 0:
            self.waiting.remove(sequence)
            return
        del self.running[sequence.slot]
        if reason == "failed":
            self._free(sequence.slot, save=False)
            return
        if self.limits.stateful:
            self.cells.checkpoint(sequence.slot)
        if not self.cells.keep(sequence.slot):
            self._slots.append(sequence.slot)

    def _free(self, slot: int, *, save: bool) -> None:
        """Gives a slot back; with `save`, what it held can be had again from host memory."""
        self.cells.release(slot, save=save)
        self._slots.append(slot)

    def _requeue(self, sequence: Sequence) -> None:
        """Pauses a running sequence: its tokens stay, its cells go, and it is the first to go on."""
        del self.running[sequence.slot]
        if self.limits.stateful:
            self.cells.checkpoint(sequence.slot)
        self._free(sequence.slot, save=True)
        self._put_back(sequence)

    def _put_back(self, sequence: Sequence) -> None:
        """Lets a sequence without a slot wait to be computed again.

        Its promise grows, so that it comes back only to room in which it can go on for a while.
        """
        sequence.slot, sequence.computed, sequence.paused = -1, 0, True
        sequence.reserve = min(len(sequence.known) + RESUME_RESERVE_TOKENS, sequence.limit)
        self.waiting.put_back(sequence)

    def _recompute(self, broken: list[Sequence]) -> None:
        """Takes in that numbers overflowed or a step broke, in which `broken` were: who did it is not known.

        What overflowed stays in cells, also in freed ones, and reaches whoever reads beside them; so all cells
        are wiped and all running sequences computed again, the broken ones each alone until they have drawn a
        token. Who breaks alone has failed.
        """
        if len(self.running) == 1:
            for sequence in broken:
                self._report.finished(sequence, "failed")
                del self.running[sequence.slot]
        for sequence in reversed(self.running.values()):
            sequence.suspect = sequence in broken
            self._put_back(sequence)
        self.running.clear()
        self.cells.clear()
        self._slots = list(range(self.limits.slots - 1, -1, -1))

    def _step(self, seconds: float) -> Step:
        return self._report.take(running=len(self.running), waiting=len(self.waiting), seconds=seconds)
