"""The whole story of a request, from its bytes to its answer.

decode, find the model, refuse what it cannot do, prepare the prompt, hand it to the engine, wait for the
first token; from there on either a stream of frames or one body, which is the fold of the same events. What
fails before the first token is raised, because an HTTP status can still be chosen; what fails after it is
told in the stream.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from typing import Final, Protocol

import msgspec

from b3node.contract.capabilities import refuse_unsupported
from b3node.contract.decode import decode_request
from b3node.contract.encode import response_body, sse_frame
from b3node.contract.events import Event
from b3node.contract.request import FunctionTool, Request
from b3node.engine.messages import Finished, Sampling, Token
from b3node.errors import Refusal
from b3node.events.fold import Fold
from b3node.events.initial_response import begin
from b3node.ids import new_response_id
from b3node.parse.call import Judge
from b3node.parse.reader import parser_of
from b3node.prompt.prepared import Prepared
from b3node.service import log
from b3node.service.in_flight import Flight
from b3node.service.node import BUSY_RETRY, Node
from b3node.service.output_processor import Telling
from b3node.service.record import Record
from b3node.workers.served_model import Generation, Output

NAMESPACE: Final = "local"
"""Whom a prefix may be shared with; a node without keys has one organization."""

_LARGE_BODY: Final = 65_536
"""Bytes above which decoding leaves the event loop: smaller ones take less than a millisecond."""


class Whole(msgspec.Struct, frozen=True):
    """An answer without streaming: the JSON body."""

    body: bytes


class Outlet(Protocol):
    """Where the frames of a stream go."""

    def write(self, frame: bytes) -> bool:
        """Sends a frame, one event, in one write; whether the client keeps up. Never blocks, never refuses."""
        ...

    async def drain(self) -> None:
        """Returns once all is sent and the client keeps up; at once where that is so already."""
        ...


class Stream:
    """A streamed answer, whose first token is there.

    Args:
        telling: has told `events`.
        flight: the request's place.
        generation: where the rest comes from.
        events: what is to be sent first.
    """

    def __init__(
        self, telling: Telling, flight: Flight, generation: Generation, events: Sequence[Event]
    ) -> None:
        self._telling = telling
        self._flight = flight
        self._generation = generation
        self._events = events

    async def run(self, outlet: Outlet) -> None:
        """Sends the whole stream; raises what `drain` raises and cancellations: all else is told in the frames.

        What the engine says goes to the client from within the callback that brought it: between a token and its
        write no task is woken. Only a client that does not keep up is waited for.
        """
        _say(outlet, self._events)
        while not self._telling.ended:
            await outlet.drain()
            try:
                await self._flight.wait(partial(self._generation.listen, partial(self._hear, outlet)))
            except Refusal as refusal:
                _say(outlet, self._telling.fail(refusal))
            except Exception as error:  # noqa: BLE001 - a bug must end the stream with its error event, not with a bare close
                log.bug(self._flight.record, error)
                _say(outlet, self._telling.fail(internal(self._flight.record.request_id)))
        await outlet.drain()

    def _hear(self, outlet: Outlet, outputs: Sequence[Output]) -> bool:
        """Passes on what the engine says; whether there is more to hear, and a client that keeps up."""
        telling = self._telling
        return _say(outlet, telling.hear(outputs)) and not telling.ended


def _say(outlet: Outlet, events: Iterable[Event]) -> bool:
    keeps_up = True
    for event in events:
        keeps_up = outlet.write(sse_frame(event))
    return keeps_up


Reply = Whole | Stream


async def respond(node: Node, flight: Flight, body: bytes) -> Reply:
    """Answers a request. The generation belongs to `flight`, which cancels it when it is left.

    Args:
        node: what serves it.
        flight: its place, entered; its record takes what is learned.
        body: the request's JSON, at most `node.max_request_bytes` long.

    Raises:
        Refusal: anything that is not a success and happens before the first token.
    """
    record = flight.record
    with record.timing.phase("parse"):
        request, size = await _decode(body), len(body)
        del body  # may be megabytes, and a stream may be long
        _note(record, request)
        model = node.model(request.model)
        _check_size(size, model.max_request_bytes)
        refuse_unsupported(request)
        model.require_ready()
    with record.timing.phase("prepare"):
        prepared = await flight.wait(partial(model.prepare, request))
    flight.release_bytes()
    record.loosened = prepared.loosened or None
    telling = _telling(node, record, request, prepared)
    generation = model.submit(
        prepared,
        sampling=_sampling(request),
        max_tokens=request.max_output_tokens,
        namespace=NAMESPACE,
    )
    flight.started(generation)
    outputs = await _until_first_token(node, flight, generation)
    events = [*telling.open(), *telling.hear(outputs)]
    if request.stream:
        return Stream(telling, flight, generation, events)
    return Whole(await _body(telling, flight, generation, events))


async def _decode(body: bytes) -> Request:
    return decode_request(body) if len(body) <= _LARGE_BODY else await asyncio.to_thread(decode_request, body)


def _note(record: Record, request: Request) -> None:
    record.stream = request.stream
    record.model = request.model
    record.input_items = len(request.input)
    record.tools = len(request.tools)
    record.max_output_tokens = request.max_output_tokens


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise too_large(size, limit)


def too_large(size: int, limit: int) -> Refusal:
    """The refusal of a body; `size` is what it has, or what is known of it so far."""
    return Refusal("payload_too_large", f"The request body has {size} bytes; at most {limit} are accepted.")


def _telling(node: Node, record: Record, request: Request, prepared: Prepared) -> Telling:
    record.response_id = new_response_id()
    skeleton = begin(request, response_id=record.response_id, created_at=int(node.clock.wall()))
    parser = parser_of(prepared.reading, request.tools, _judge(request.tools))
    return Telling(node, record, skeleton, parser, prompt_tokens=prepared.prompt_tokens)


def _judge(tools: Sequence[FunctionTool]) -> Judge:
    """The judge of a request's calls."""
    if not tools:
        return lambda *_: False
    from b3node.grammar.judge import judge  # noqa: PLC0415 - a third of what the front would import; `warm_up` does it

    return judge(tools)


def warm_up() -> None:
    """Imports what only some requests need, so that the first of them does not wait for it. For a thread beside the node."""
    _judge((FunctionTool("f"),))
    import_module("jsonschema")  # what judges read when they cannot read a schema by themselves


def _sampling(request: Request) -> Sampling:
    # What is unset is 1.0, as the response says (contract decisions, "Response object").
    return Sampling(
        temperature=1.0 if request.temperature is None else request.temperature,
        top_p=1.0 if request.top_p is None else request.top_p,
        seed=secrets.randbits(32),
    )


async def _until_first_token(node: Node, flight: Flight, generation: Generation) -> list[Output]:
    heard: list[Output] = []
    limit = node.limits.first_token_seconds
    try:
        async with asyncio.timeout(limit):
            while not any(isinstance(output, Token | Finished) for output in heard):
                heard += await flight.wait(generation.take)
    except TimeoutError:
        raise Refusal(
            "capacity_unavailable",
            f"No first token within {limit:.0f} seconds; try again, or send a shorter prompt.",
            retry_after=BUSY_RETRY,
        ) from None
    return heard


async def _body(telling: Telling, flight: Flight, generation: Generation, events: list[Event]) -> bytes:
    folding = Fold()
    for event in events:
        folding.feed(event)
    while not telling.ended:
        for event in telling.hear(await flight.wait(generation.take)):
            folding.feed(event)
    return response_body(folding.finish())


def internal(request_id: str) -> Refusal:
    """All that a client may know of a bug."""
    return Refusal("internal", f"Internal error (request {request_id}).")
