"""Turns the engine's outputs for one sequence into contract events.

It holds the parser, the composer and the counts of one response, and knows neither time-outs nor sockets.
Invariant: for any outputs, cut into any batches, the events are those of one well-formed response, and
`ended` is true exactly when the last of them has been returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from b3node.contract.events import Event
from b3node.contract.response import B3os, Response, Usage
from b3node.engine.messages import Finished, FinishReason, Started, Token
from b3node.errors import Refusal, busy
from b3node.events.composer import Composer
from b3node.events.outcome import Completed, Failed, Incomplete, Outcome
from b3node.events.states import ResponseState
from b3node.ids import new_call_id
from b3node.parse.deltas import Delta, merged
from b3node.parse.parser import Parser
from b3node.service.node import Node
from b3node.service.record import Record
from b3node.workers.served_model import Output


class OutputProcessor:
    """One response, from its submission to the engine until its last event.

    Args:
        node: names itself in `b3os`, and has the clocks.
        record: takes the counts and the phases.
        initial: the response as `initial_response.begin` makes it.
        parser: of the model's dialect, new.
        prompt_tokens: the prompt's length.
    """

    def __init__(
        self, node: Node, record: Record, initial: Response, parser: Parser, *, prompt_tokens: int
    ) -> None:
        self._node = node
        self._record = record
        self._parser = parser
        self._composer = Composer(initial, call_id=new_call_id)
        self._submitted = record.timing.elapsed
        self._prompt_tokens = prompt_tokens
        self._cached_tokens = 0
        self._output_tokens = 0
        self._reasoning_tokens = 0
        self._thinking = parser.thinking
        self.ended = False
        """Whether the last event has been returned."""
        record.prompt_tokens = prompt_tokens

    def open(self) -> list[Event]:
        """Returns the events that every response begins with."""
        return self._composer.open()

    def feed(self, outputs: Sequence[Output]) -> Iterable[Event]:
        """Returns the events of new outputs, one by one: none is lost when a later output is bad.

        Tokens that arrived together are parsed together: a front that is slower than the engine catches up
        with fewer, larger deltas.

        Raises:
            Refusal: the engine could not begin or could not go on; nothing more comes from it. `fail` makes
                events of it.
        """
        if len(outputs) == 1 and isinstance(token := outputs[0], Token):
            return self._compose(self._read(token.piece))  # the usual case
        return self._each(outputs)

    def _each(self, outputs: Sequence[Output]) -> Iterator[Event]:
        pieces: list[bytes] = []
        finished: Finished | None = None
        for output in outputs:
            match output:
                case Token():
                    pieces.append(output.piece)
                case Started():
                    self._start(output)
                case Finished():
                    finished = output
        yield from self._merge(delta for piece in pieces for delta in self._read(piece))
        if finished is not None:
            yield from self._end(finished)

    def fail(self, refusal: Refusal) -> list[Event]:
        """Returns the events of a response that breaks off: `response.failed` with its output, `error`.

        Bytes that the parser holds back are not part of it: they may be half a character or half a marker.
        """
        self._record.refuse(refusal)
        self._record.finish_reason = "failed"
        self._model_ends()
        return self._finish(Failed(refusal.code, refusal.message, refusal.param))

    def _start(self, started: Started) -> None:
        self._cached_tokens = self._record.cached_tokens = started.cached_tokens
        self._record.timing.set("queue", started.queue_seconds * 1000.0)

    def _read(self, piece: bytes) -> list[Delta]:
        """Parses a token. The tokens of reasoning are counted, its markers among them."""
        if self._output_tokens == 0:
            self._first_token()
        self._output_tokens += 1
        self._record.output_tokens = self._output_tokens  # also for a client that leaves before the end
        was_thinking, deltas = self._thinking, self._parser.feed(piece)
        self._thinking = self._parser.thinking
        if was_thinking or self._thinking:
            self._reasoning_tokens += 1
        return deltas

    def _first_token(self) -> None:
        timing = self._record.timing
        now = timing.elapsed
        timing.set("prefill", now - self._submitted - (timing.get("queue") or 0.0))
        timing.set("ttft", now)

    def _end(self, finished: Finished) -> Iterator[Event]:
        self._cached_tokens = self._record.cached_tokens = finished.cached_tokens
        self._output_tokens = self._record.output_tokens = finished.output_tokens
        self._record.finish_reason = finished.reason
        if self._record.timing.get("ttft") is None:
            self._first_token()
        self._model_ends()
        ending = self._ending(finished.reason)
        yield from self._compose(self._parser.finish())
        if self._composer.state is ResponseState.CALL:
            ending = Incomplete()  # a call that the model broke off: completed ones have whole arguments
        yield from self._finish(ending)

    def _model_ends(self) -> None:
        self._record.timing.set("model", self._record.timing.elapsed - self._submitted)

    def _ending(self, reason: FinishReason) -> Outcome:
        match reason:
            case "stop":
                return Completed()
            case "length":
                return Incomplete()
            case "capacity":
                raise busy()
            case "failed" | "cancelled":
                raise Refusal("internal", f"The model could not go on (request {self._record.request_id}).")

    def _compose(self, deltas: list[Delta]) -> Iterable[Event]:
        return self._composer.feed(deltas[0]) if len(deltas) == 1 else self._merge(deltas)

    def _merge(self, deltas: Iterable[Delta]) -> Iterator[Event]:
        for delta in merged(deltas):
            yield from self._composer.feed(delta)

    def _finish(self, ending: Outcome) -> list[Event]:
        timing = self._record.timing
        self._record.reasoning_tokens = self._reasoning_tokens
        usage = Usage.of(
            input_tokens=self._prompt_tokens,
            cached_tokens=self._cached_tokens,
            output_tokens=self._output_tokens,
            reasoning_tokens=self._reasoning_tokens,
        )
        b3os = B3os(self._node.id, timing.of_stream() if self._record.stream else timing.of_body())
        now = int(self._node.clock.wall())
        events = self._composer.finish(ending, usage=usage, completed_at=now, b3os=b3os)
        self.ended = True
        return events
