"""Decides for each step which sequences compute how much, without a model, a clock or I/O.

There is no prefill phase and no decode phase. A sequence has known tokens and computed tokens; each sequence
whose computed tokens are fewer catches up under one budget a step. Streams come first, with one token each
and the forced tokens after it as far as they fit; then prompts in the order of their admission, as far as the
token budget allows. `plan` returns a step as a value, `apply` takes in the drawn tokens and returns the
messages for the front.

Promises, and how they are kept:

* A running sequence is never dropped for a new one. Admission promises it cells for its prompt and its
  reserve of output. A sequence that outgrows its reserve may be paused when cells run out: its cells go, its
  tokens stay, and it is computed again.
* First come first served, with a fair share: of the waiting sequences, the one whose namespace runs least
  goes next; within a namespace, in order of arrival.
* A common prefix is computed once: a prompt reads cells that another slot has computed, and waits for a
  running prompt that is still computing their common prefix.
* Waiting is bounded in number and in time; a sequence that cannot be served ends as `capacity`.
* The cells of a cancelled sequence are free at the next step; the prefix it computed is kept.

Invariants (`check`): every slot is free, running or kept; a running sequence has something to compute and
holds exactly the tokens it has computed; promised cells never exceed those that exist.
"""

from __future__ import annotations

from collections import abc

from b3node.engine.cache.eviction import EvictionPolicy
from b3node.engine.cache.host_cache import HostCache
from b3node.engine.cache.prefix_cache import PrefixCache
from b3node.engine.cache.span_index import SpanIndex
from b3node.engine.limits import EngineLimits
from b3node.engine.messages import FinishReason, Step, Submit
from b3node.engine.plan import Chunk, Plan
from b3node.engine.sampling.constraint import Constraint
from b3node.engine.sampling.sampler import NoToken
from b3node.engine.schedule.admission import Admission
from b3node.engine.schedule.chunking import Chunker
from b3node.engine.schedule.lifecycle import Lifecycle
from b3node.engine.schedule.queue import Queue
from b3node.engine.schedule.sequence import Sequence
from b3node.engine.schedule.sliding_window import SlidingWindows
from b3node.engine.schedule.slots import Slots
from b3node.engine.schedule.step_report import StepReport
from b3node.engine.schedule.token_budget import MeasuredStep, TokenBudget
from b3node.engine.speculation.drafter import Drafter, DrafterFactory


class Scheduler:
    """The state of an engine's requests. All methods mutate it unless they say otherwise.

    Args:
        limits: bounds, fixed for its life.
        eog: ids that end a generation.
        pieces: the bytes of each token id.
        token_budget: gives the tokens that a step may compute, and their cost.
    """

    def __init__(
        self,
        limits: EngineLimits,
        *,
        eog: frozenset[int],
        pieces: abc.Sequence[bytes],
        token_budget: TokenBudget,
    ) -> None:
        self.limits = limits
        self.token_budget = token_budget
        host_cache = HostCache(
            budget=limits.host_cache_bytes, token_bytes=limits.token_bytes, state_bytes=limits.state_bytes
        )
        self.cache = PrefixCache(limits.cells, host_cache, stateful=limits.stateful)
        self.waiting = Queue(limits.waiting)
        self._slots = Slots(limits.slots, self.cache)
        self.running = self._slots.running
        self._report = StepReport()
        self._lifecycle = Lifecycle(limits, self.cache, self._slots, self.waiting, self._report)
        windows = SlidingWindows(limits, self.cache)
        self._admission = Admission(
            limits, self.cache, self._slots, self.waiting, windows, self._report, n_vocab=len(pieces)
        )
        self._eviction = EvictionPolicy(limits, self.cache)
        self._span_index = SpanIndex()
        self._chunker = Chunker(limits, token_budget, windows, eog)
        self._drafts = DrafterFactory()
        self._appended: list[Drafter] = []
        """Drafters of the sequences to which the last step appended tokens."""
        self._measured: MeasuredStep | None = None
        self._eog = eog
        self._pieces = pieces

    # -- messages of the front -----------------------------------------------------------------------

    def submit(
        self,
        submit: Submit,
        now: float,
        constraint: Constraint | None = None,
        special_pieces: abc.Mapping[int, bytes] | None = None,
    ) -> None:
        """Queues a sequence, or finishes it at once.

        It ends as `capacity` when the queue is full, and as `failed` when it cannot be computed, or has a
        grammar or an outline and no constraint that keeps it.

        Args:
            submit: the message.
            now: seconds of the engine's clock.
            constraint: holds the sequence to its grammar and outline.
            special_pieces: the bytes that the front gets for special tokens, in place of the vocabulary's.
        """
        sequence = Sequence.of(
            submit,
            self._span_index.ids(submit.prompt),
            n_ctx=self.limits.n_ctx,
            now=now,
            constraint=constraint,
            special_pieces=special_pieces,
        )
        lacks_constraint = constraint is None and (submit.grammar is not None or submit.outline is not None)
        if lacks_constraint or not self._admission.is_computable(submit.prompt, sequence.prompt):
            self._report.finished(sequence, "failed")
        elif self.waiting.full:
            self._report.finished(sequence, "capacity")
        else:
            if self.limits.drafts and not sequence.images:  # a draft could repeat the ids of an image
                kind = (sequence.namespace, sequence.sampling.greedy)
                sequence.drafter = self._drafts.make(kind, sequence.known)
            self.waiting.append(sequence)

    def cancel(self, request: int) -> None:
        """Ends a waiting or running sequence; unknown ids are ignored."""
        for sequence in (*self.waiting, *self.running.values()):
            if sequence.id == request:
                self._lifecycle.finish(sequence, "cancelled")
                return

    # -- one step ------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether a step would bring nothing; changes nothing."""
        busy = self.running or self.waiting or self.cache.moves or self._report.news
        return not busy and not self._eviction.has_background_work

    def plan(self, now: float) -> Plan:
        """Returns the next step; expires, admits, evicts and preempts on the way."""
        self._learn()
        self._expire(now)
        admitted = self._admit(now)
        self._evict(admitted=admitted)
        chunks = self._chunk()
        while not self._make_room(chunks) and self._preempt():
            chunks = self._chunk()
        return Plan(self.cache.take_moves(), tuple(chunks))

    def _learn(self) -> None:
        """Updates drafters and cost model from the last step.

        Deferred until its tokens were sent, so that it does not delay them.
        """
        for drafter in self._appended:
            drafter.feed()
        self._appended.clear()
        if self._measured is not None:
            self.token_budget.observe(self._measured)
            self._measured = None

    def _expire(self, now: float) -> None:
        """Ends the sequences that have waited as long as they may."""
        for sequence in self.waiting.expired(now):
            self._lifecycle.finish(sequence, "capacity")

    def _admit(self, now: float) -> bool:
        """Admits waiting sequences. Returns whether one has entered."""
        if not self.running:
            self.cache.total = self.limits.cells  # see `on_cache_full`
        return self._admission.admit(now) > 0

    def _evict(self, *, admitted: bool) -> None:
        """Evicts or saves kept slots as the eviction policy decides."""
        if self.running:
            self._eviction.begin_step(admitted=admitted)
            while (slot := self._eviction.next_eviction()) is not None:
                self._slots.release(slot, save=True)
            return
        work = self._eviction.background_work()
        if work.save is not None:
            self.cache.save(work.save)
        for slot in work.evict:
            self._slots.release(slot, save=True)

    def _chunk(self) -> list[Chunk]:
        """Cuts the chunks of the running sequences for this step."""
        return self._chunker.chunks(self.running, self.cache.free)

    def _make_room(self, chunks: list[Chunk]) -> bool:
        """Evicts kept slots until the chunks fit. Returns False when they do not fit with all evicted."""
        wanted = sum(len(chunk.tokens) for chunk in chunks)
        while wanted > self.cache.free:
            if not self._slots.evict_next():
                return False
        return True

    def _preempt(self) -> bool:
        """Pauses the youngest sequence that outgrew its promise. Returns False when only one runs."""
        if len(self.running) < 2:
            return False
        grown = [slot for slot, s in self.running.items() if len(s.known) > s.reserve]
        self._lifecycle.pause(max(grown or self.running, key=lambda slot: self.running[slot].arrived))
        return True

    # -- its outcome ---------------------------------------------------------------------------------

    def draws(self, plan: Plan) -> list[tuple[Sequence, Chunk]]:
        """Returns the sequences that ask for rows, in the order of the rows, with their chunks.

        Changes nothing.
        """
        return [(self.running[chunk.slot], chunk) for chunk in plan.chunks if chunk.logits]

    def apply(self, plan: Plan, drawn: abc.Mapping[int, abc.Sequence[int]], *, seconds: float) -> Step:
        """Takes in a computed plan.

        Args:
            plan: the plan that was computed.
            drawn: the new tokens of each slot that asked for rows; the last may be a `NoToken`. The first is
                drawn from the slot's row, or forced; the others are forced, or drawn from the rows after
                drafted tokens.
            seconds: how long the step took.

        Returns:
            All that the front gets to know.
        """
        broken: list[Sequence] = []
        alone = len(self.running) == 1
        prompt_tokens = 0
        for chunk in plan.chunks:
            sequence = self.running[chunk.slot]
            prompt_tokens += 0 if sequence.answering else len(chunk.tokens)
            tokens = drawn[chunk.slot] if chunk.logits else ()
            self._account(sequence, chunk, tokens)
            if not self._append_all(sequence, tokens):
                broken.append(sequence)
        self.cache.total = max(self.cache.total, min(self.cache.used, self.limits.cells))  # seen to fit
        if broken:
            self._lifecycle.recompute(broken, alone=alone)
        if not plan.copies:
            self._measured = MeasuredStep(prompt_tokens, plan.tokens - prompt_tokens, seconds)
        return self._step(seconds, prompt_tokens)

    def on_decode_error(self, plan: Plan) -> Step:
        """Takes in that the step failed half-way: nothing that the cache holds can be relied on."""
        broken = [self.running[chunk.slot] for chunk in plan.chunks]
        self._lifecycle.recompute(broken, alone=len(self.running) == 1)
        return self._step()

    def on_cache_full(self, plan: Plan) -> Step:
        """Takes in that the step did not fit.

        Evicts all kept slots; without any pauses the youngest sequence, or ends the only one. The account of
        cells is then wrong about the cache. Until nothing runs it is bounded by the size that was seen not to
        fit.
        """
        self.cache.total = min(self.cache.total, self.cache.used + max(plan.tokens - 1, 0))
        youngest = plan.chunks[-1].slot
        if plan.drafted:
            return self._step()  # there is no room for as many guesses
        if self.cache.kept:
            while self._slots.evict_next():
                pass
        elif len(plan.chunks) > 1:
            self._lifecycle.pause(youngest)
        else:
            self._lifecycle.finish(self.running[youngest], "capacity")
        return self._step()

    def check(self) -> None:
        """Raises `ValueError` unless every invariant holds; changes nothing."""
        self.cache.check()
        self._slots.check()
        if any(sequence.slot is not None for sequence in self.waiting):
            raise ValueError("a waiting sequence has a slot")

    def _account(self, sequence: Sequence, chunk: Chunk, tokens: abc.Sequence[int]) -> None:
        """Accounts for a computed chunk that `tokens` follow; trims the drafted tokens that differ."""
        accepted = chunk.accepted(tokens)
        sequence.computed += accepted
        self.cache.extend(chunk.slot, chunk.tokens[:accepted])
        if accepted < len(chunk.tokens):
            self.cache.trim(chunk.slot)
        if self._chunker.is_checkpoint(sequence):
            self.cache.checkpoint(chunk.slot)

    def _append_all(self, sequence: Sequence, tokens: abc.Sequence[int]) -> bool:
        """Appends new tokens, and finishes the sequence where it ends. Returns False for broken numbers."""
        if sequence.drafter is not None and tokens:
            self._appended.append(sequence.drafter)
        for token in tokens:
            if token < 0 and token == NoToken.BROKEN:
                return False
            if (reason := self._append(sequence, token)) is not None:
                self._lifecycle.finish(sequence, reason)
                break
        return True

    def _append(self, sequence: Sequence, token: int) -> FinishReason | None:
        """Appends a token. Returns the reason for which the sequence ends with it, None if it goes on."""
        if token < 0:
            return "failed"  # a dead end
        sequence.append(token)
        if token in self._eog:
            return "stop"
        self._report.token(sequence, sequence.special_pieces.get(token) or self._pieces[token])
        return "length" if len(sequence.known) >= sequence.limit else None

    def _step(self, seconds: float = 0.0, prompt_tokens: int = 0) -> Step:
        """Returns the report of a step; `prompt_tokens` were computed in it."""
        return self._report.take(
            running=len(self.running),
            waiting=len(self.waiting),
            seconds=seconds,
            cells_used=self.cache.used,
            prompt_tokens=prompt_tokens,
        )
