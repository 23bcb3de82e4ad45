"""The whole life of a request, from its bytes to its answer.

Decode, find the model, refuse unsupported parameters, prepare the prompt, submit it to the engine, wait for
the first token; from there on either a stream of frames or one body, which is the fold of the same events. A
failure before the first token is raised, because an HTTP status can still be chosen; a later one ends the
stream with its error event.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from typing import Final, Protocol

import msgspec

from b3node.contract.decode import decode_request
from b3node.contract.encode import response_body, sse_frame
from b3node.contract.events import Event
from b3node.contract.refused import refuse_images
from b3node.contract.request import FunctionTool, Request
from b3node.engine.messages import Finished, Sampling, Token
from b3node.errors import Refusal, busy, too_large
from b3node.events.fold import Fold
from b3node.events.initial_response import begin
from b3node.ids import new_response_id
from b3node.parse.call import CallCheck
from b3node.parse.reader import parser_of
from b3node.prompt.prepared import Prepared
from b3node.service import log
from b3node.service.in_flight import InFlight
from b3node.service.node import Node
from b3node.service.output_processor import OutputProcessor
from b3node.service.record import Record
from b3node.workers.served_model import Generation, Output

_LARGE_BODY_BYTES: Final = 65_536
"""Above it, decoding leaves the event loop: smaller bodies take less than a millisecond."""


class CompleteBody(msgspec.Struct, frozen=True):
    """An answer without streaming: the JSON body."""

    body: bytes


class FrameSink(Protocol):
    """Sends the frames of a stream to its client."""

    def write(self, frame: bytes) -> bool:
        """Sends a frame in one write; returns whether the client keeps up. Never blocks or fails."""
        ...

    async def drain(self) -> None:
        """Returns once all is sent and the client keeps up; at once where that is so already."""
        ...


class Stream:
    """A streamed answer, whose first token is there.

    Args:
        processor: has composed `events`.
        in_flight: the request's place.
        generation: the source of the rest.
        events: the events to be sent first.
    """

    def __init__(
        self,
        processor: OutputProcessor,
        in_flight: InFlight,
        generation: Generation,
        events: Sequence[Event],
    ) -> None:
        self._processor = processor
        self._in_flight = in_flight
        self._generation = generation
        self._events = events

    async def run(self, sink: FrameSink) -> None:
        """Sends the whole stream. Raises cancellations and the errors of `drain`; all others end the stream.

        Outputs of the engine are sent from within the callback that brought them: between a token and its
        write no task is woken. Only a client that does not keep up is waited for.
        """
        _write(sink, self._events)
        while not self._processor.ended:
            await sink.drain()
            try:
                await self._in_flight.wait(partial(self._generation.listen, partial(self._feed, sink)))
            except Refusal as refusal:
                _write(sink, self._processor.fail(refusal))
            except Exception as error:  # noqa: BLE001 - a bug ends the stream with its error event too
                log.bug(self._in_flight.record, error)
                _write(sink, self._processor.fail(internal(self._in_flight.record.request_id)))
        await sink.drain()

    def _feed(self, sink: FrameSink, outputs: Sequence[Output]) -> bool:
        """Sends the engine's outputs; returns whether more may follow and the client keeps up."""
        processor = self._processor
        return _write(sink, processor.feed(outputs)) and not processor.ended


def _write(sink: FrameSink, events: Iterable[Event]) -> bool:
    keeps_up = True
    for event in events:
        keeps_up = sink.write(sse_frame(event))
    return keeps_up


Reply = CompleteBody | Stream


async def respond(node: Node, in_flight: InFlight, body: bytes) -> Reply:
    """Answers a request. The generation belongs to `in_flight`, which cancels it at the end of its context.

    Args:
        node: has the models.
        in_flight: the request's place, entered; its record is filled in.
        body: the request's JSON, at most `node.max_request_bytes` long.

    Raises:
        Refusal: anything that is not a success and happens before the first token.
    """
    record = in_flight.record
    with record.timing.phase("parse"):
        request, size = await _decode(body), len(body)
        del body  # may be megabytes, and a stream may be long
        _note(record, request)
        model = node.model(request.model)
        _check_size(size, model.max_request_bytes)
        refuse_images(request)
        model.require_ready()
    with record.timing.phase("prepare"):
        prepared = await in_flight.wait(partial(model.prepare, request))
    in_flight.release_bytes()
    record.loosened = prepared.loosened or None
    processor = _output_processor(node, record, request, prepared)
    generation = model.submit(
        prepared,
        sampling=_sampling(request),
        max_tokens=request.max_output_tokens,
        namespace=in_flight.principal.namespace,
    )
    in_flight.attach(generation)
    outputs = await _until_first_token(node, in_flight, generation)
    events = [*processor.open(), *processor.feed(outputs)]
    if request.stream:
        return Stream(processor, in_flight, generation, events)
    return CompleteBody(await _body(processor, in_flight, generation, events))


async def _decode(body: bytes) -> Request:
    if len(body) <= _LARGE_BODY_BYTES:
        return decode_request(body)
    return await asyncio.to_thread(decode_request, body)


def _note(record: Record, request: Request) -> None:
    record.stream = request.stream
    record.model = request.model
    record.input_items = len(request.input)
    record.tools = len(request.tools)
    record.max_output_tokens = request.max_output_tokens


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise too_large(size, limit)


def _output_processor(node: Node, record: Record, request: Request, prepared: Prepared) -> OutputProcessor:
    record.response_id = new_response_id()
    initial = begin(request, response_id=record.response_id, created_at=int(node.clock.wall()))
    parser = parser_of(prepared.reading, request.tools, _judge(request.tools))
    return OutputProcessor(node, record, initial, parser, prompt_tokens=prepared.prompt_tokens)


def _judge(tools: Sequence[FunctionTool]) -> CallCheck:
    """Returns the judge of a request's calls."""
    if not tools:
        return lambda *_: False
    from b3node.grammar.judge import judge  # noqa: PLC0415 - a third of all imports would delay the start

    return judge(tools)


def warm_up() -> None:
    """Imports modules that only some requests need, so that the first of them does not wait. For a thread."""
    _judge((FunctionTool("f"),))
    import_module("jsonschema")  # judges use it for schemas that they cannot read by themselves


def _sampling(request: Request) -> Sampling:
    # Unset values are 1.0, as the response says (contract decisions, "Response object").
    return Sampling(
        temperature=1.0 if request.temperature is None else request.temperature,
        top_p=1.0 if request.top_p is None else request.top_p,
        seed=secrets.randbits(32),
    )


async def _until_first_token(node: Node, in_flight: InFlight, generation: Generation) -> list[Output]:
    outputs: list[Output] = []
    limit = node.limits.first_token_seconds
    try:
        async with asyncio.timeout(limit):
            while not any(isinstance(output, Token | Finished) for output in outputs):
                outputs += await in_flight.wait(generation.take)
    except TimeoutError:
        raise busy(
            f"No first token within {limit:.0f} seconds; try again, or send a shorter prompt."
        ) from None
    return outputs


async def _body(
    processor: OutputProcessor, in_flight: InFlight, generation: Generation, events: list[Event]
) -> bytes:
    folding = Fold()
    for event in events:
        folding.feed(event)
    while not processor.ended:
        for event in processor.feed(await in_flight.wait(generation.take)):
            folding.feed(event)
    return response_body(folding.finish())


def internal(request_id: str) -> Refusal:
    """Returns the refusal for a bug: all that a client may know of it is the request's id."""
    return Refusal("internal", f"Internal error (request {request_id}).")
