"""Collects the messages of a step for the front while the step is planned and applied."""

from __future__ import annotations

from b3node.engine.messages import Finished, FinishReason, Started, Step, Token
from b3node.engine.schedule.sequence import Sequence


class StepReport:
    """Collects until `take`; every method mutates it."""

    def __init__(self) -> None:
        self._started: list[Started] = []
        self._tokens: list[Token] = []
        self._finished: list[Finished] = []

    @property
    def news(self) -> bool:
        """Whether there is anything to send; changes nothing."""
        return bool(self._started or self._tokens or self._finished)

    def started(self, sequence: Sequence, now: float) -> None:
        """Adds that a sequence left the queue for the first time."""
        self._started.append(Started(sequence.id, now - sequence.arrived, sequence.cached))

    def token(self, sequence: Sequence, piece: bytes) -> None:
        """Adds the bytes of a generated token."""
        self._tokens.append(Token(sequence.id, piece))

    def finished(self, sequence: Sequence, reason: FinishReason) -> None:
        """Adds that a sequence has ended."""
        self._finished.append(
            Finished(
                id=sequence.id,
                reason=reason,
                prompt_tokens=sequence.prompt,
                cached_tokens=sequence.cached,
                output_tokens=sequence.generated,
            )
        )

    def take(
        self, *, running: int, waiting: int, seconds: float, cells_used: int, prompt_tokens: int
    ) -> Step:
        """Returns all that was collected since the last call, with the numbers of the step."""
        step = Step(
            tuple(self._started),
            tuple(self._tokens),
            tuple(self._finished),
            running,
            waiting,
            seconds,
            cells_used,
            prompt_tokens,
        )
        self._started, self._tokens, self._finished = [], [], []
        return step
