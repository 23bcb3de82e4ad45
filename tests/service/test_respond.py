from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
import structlog
from hypothesis import given, strategies as st

from b3node.engine.messages import Finished, FinishReason, Token
from b3node.errors import Code, Refusal
from b3node.principal import LOCAL, Principal
from b3node.service import log
from b3node.service.node import Node, NodeLimits
from b3node.service.record import Record
from b3node.service.respond import CompleteBody, Stream, respond
from b3node.service.timing import Clock, Stopwatch
from b3node.workers.served_model import Output
from tests.service.fakes import MODEL, FakeFrameSink, FakeModel, Gate, Step, finished, said, started, token

CLOCK = Clock(monotonic=lambda: 1.0, wall=lambda: 1_800_000_000.9)


def body(**fields: Any) -> bytes:
    return json.dumps({"model": MODEL, "input": "hi", **fields}).encode()


def ask(model: FakeModel, data: bytes | None = None, **limits: Any) -> tuple[Any, Record]:
    """The JSON body or the list of frames of one request, and what was recorded of it."""
    record = Record(request_id="req_x", timing=Stopwatch(CLOCK.monotonic), method="POST")

    async def story() -> Any:
        node = Node("n1", [model], limits=NodeLimits(**limits), clock=CLOCK)
        with node.admit(record, LOCAL) as in_flight:
            reply = await respond(node, in_flight, body() if data is None else data)
            if isinstance(reply, CompleteBody):
                return json.loads(reply.body)
            assert isinstance(reply, Stream)
            return await told(reply)

    return asyncio.run(story()), record


def parsed(frame: bytes) -> dict[str, Any]:
    event, data, empty, end = frame.decode().split("\n")
    assert (empty, end) == ("", "")
    value: dict[str, Any] = json.loads(data.removeprefix("data: "))
    assert event == f"event: {value['type']}"
    return value


async def told(stream: Stream) -> list[dict[str, Any]]:
    """The events of a stream, each of which was one write."""
    sink = FakeFrameSink()
    await stream.run(sink)
    return [parsed(frame) for frame in sink.frames]


def refused(model: FakeModel, data: bytes | None = None, **limits: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        ask(model, data, **limits)
    return caught.value


def test_an_answer_without_streaming_is_one_body() -> None:
    """The body has the text, the usage, the times and the extension object."""
    answer, record = ask(FakeModel(said("Hell", "o")))

    assert answer["status"] == "completed"
    assert answer["output"][0]["content"][0]["text"] == "Hello"
    assert answer["usage"]["total_tokens"] == 9
    assert (answer["created_at"], answer["completed_at"]) == (1_800_000_000, 1_800_000_000)
    assert answer["b3os"]["route"] == "local"
    assert answer["b3os"]["node"] == "n1"
    assert set(answer["b3os"]["timing"]) == {"model_ms", "total_ms"}
    assert (record.stream, record.model, record.input_items) == (False, MODEL, 1)
    assert (record.finish_reason, record.response_id) == ("stop", answer["id"])


def test_a_stream_says_the_same_as_the_body() -> None:
    """With and without streaming, the response differs in ids and timing only."""
    whole, _ = ask(FakeModel(said("Hell", "o")))
    frames, _ = ask(FakeModel(said("Hell", "o")), body(stream=True))
    streamed = frames[-1]["response"]

    assert [frame["sequence_number"] for frame in frames] == list(range(len(frames)))
    assert set(streamed["b3os"]["timing"]) == {"ttft_ms", "total_ms"}
    for response in (whole, streamed):
        del response["id"], response["output"][0]["id"], response["b3os"]
    assert streamed == whole


def test_sampling_is_the_contracts_unless_asked_otherwise() -> None:
    """Unset values are the ones that the response reports as in effect; every request has its own seed."""
    model = FakeModel()
    ask(model)
    ask(model, body(temperature=0, top_p=0.5, max_output_tokens=9))
    (first, unbounded, namespace), (second, bounded, _) = model.submitted

    assert (first.temperature, first.top_p, unbounded) == (1.0, 1.0, None)
    assert (second.temperature, second.top_p, bounded) == (0.0, 0.5, 9)
    assert first.seed != second.seed
    assert namespace


def test_the_principal_names_the_namespace() -> None:
    """Requests share prefixes with those of their own organization only."""
    model = FakeModel()
    other = Principal(organization="org_2", project="p", key_id="k", scopes=frozenset())

    async def story(principal: Principal) -> None:
        record = Record(request_id="req_x", timing=Stopwatch(CLOCK.monotonic), method="POST")
        node = Node("n1", [model], clock=CLOCK)
        with node.admit(record, principal) as in_flight:
            await respond(node, in_flight, body())

    for principal in (LOCAL, other):
        asyncio.run(story(principal))

    assert [namespace for _, _, namespace in model.submitted] == ["local", "org_2"]


PICTURE = {"role": "user", "content": [{"type": "input_image", "image_url": "https://example.com/a.png"}]}


@pytest.mark.parametrize(
    ("data", "code", "param"),
    [
        (b"{", "invalid_request", None),
        (body(input=[]), "invalid_request", "input"),
        (body(model="other"), "model_not_available", "model"),
        (body(background=True), "unsupported_parameter", "background"),
        (body(input=[PICTURE]), "unsupported_parameter", "input[0].content[0].image_url"),
    ],
)
def test_bad_requests_never_reach_the_engine(data: bytes, code: Code, param: str | None) -> None:
    """What can be refused from the bytes alone is, before any prompt is made."""
    model = FakeModel()
    refusal = refused(model, data)

    assert (refusal.code, refusal.param) == (code, param)
    assert model.requests == []


def test_the_models_own_size_counts_after_decoding() -> None:
    """A body that the largest model would take is refused for a smaller one, naming both numbers."""
    small = FakeModel(max_request_bytes=50)
    refusal = refused(small, body(input="x" * 100))

    assert refusal.code == "payload_too_large"
    assert str(len(body(input="x" * 100))) in refusal.message
    assert "50" in refusal.message


def test_a_large_body_is_decoded_off_the_loop() -> None:
    """Decoding megabytes does not hold the event loop, and gives the same answer."""
    answer, _ = ask(FakeModel(max_request_bytes=10**7), body(input="x" * 1_000_000))

    assert answer["status"] == "completed"


def test_an_engine_that_is_down_costs_no_prompt() -> None:
    """While the model restarts, a request is told so at once, and when to come back."""
    model = FakeModel(state="restarting")
    refusal = refused(model)

    assert (refusal.code, refusal.retry_after) == ("infer_backend_unavailable", 3)
    assert model.requests == []


def test_a_prompt_that_cannot_be_made_is_told() -> None:
    """A refusal of the prepare worker passes through as it is."""
    model = FakeModel()

    async def refuse() -> None:
        raise Refusal("context_length_exceeded", "The prompt is too long.", param="input")

    model.preparing = refuse

    assert refused(model).code == "context_length_exceeded"
    assert model.generations == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("script", "code"),
    [
        ([finished("capacity", 0)], "capacity_unavailable"),
        ([started(), finished("failed", 0)], "internal"),
        (
            [started(), Refusal("infer_backend_unavailable", "gone", retry_after=1)],
            "infer_backend_unavailable",
        ),
        ([(started(), token("a"), finished("failed", 1))], "internal"),
    ],
)
def test_what_fails_before_the_head_is_an_http_error(
    script: Sequence[Step], code: Code, *, stream: bool
) -> None:
    """Until the first token is out of the engine, a status can be chosen, so it is; the engine is let go."""
    model = FakeModel(script)

    assert refused(model, body(stream=stream)).code == code
    assert model.generations[0].cancelled.is_set()


def test_a_body_that_fails_half_way_is_an_http_error() -> None:
    """Without streaming nothing is sent before the end, so a late failure is a plain error too."""
    model = FakeModel([started(), token("a"), Refusal("infer_backend_unavailable", "gone", retry_after=1)])

    assert refused(model).code == "infer_backend_unavailable"


def test_a_bug_before_the_head_comes_up_as_it_is() -> None:
    """An exception that is no refusal is not turned into one here: the HTTP face logs it and answers 500."""
    with pytest.raises(ZeroDivisionError):
        ask(FakeModel([started(), ZeroDivisionError("bug")]))


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (
            Refusal("infer_backend_unavailable", "The engine ended.", retry_after=1),
            "infer_backend_unavailable",
        ),
        (ZeroDivisionError("secret"), "internal"),
        (finished("failed", 1), "internal"),
    ],
)
def test_what_fails_after_the_head_ends_the_stream_with_its_error(failure: Step, code: Code) -> None:
    """`response.failed`, then `error` with our code, no gap, nothing of a library's words."""
    written: list[str] = []
    log.configure("debug", written.append)
    model = FakeModel([started(), token("half"), failure])
    frames, record = ask(model, body(stream=True))
    structlog.reset_defaults()
    failed, error = frames[-2:]

    assert [frame["sequence_number"] for frame in frames] == list(range(len(frames)))
    assert (failed["type"], error["type"]) == ("response.failed", "error")
    assert failed["response"]["error"]["code"] == "server_error"
    assert failed["response"]["output"][0]["content"][0]["text"] == "half"
    assert error["code"] == error["error"]["code"] == code
    assert "secret" not in error["message"]
    assert record.code == code
    assert model.generations[0].cancelled.is_set()
    assert ("ZeroDivisionError: secret" in "".join(written)) == isinstance(failure, ZeroDivisionError)


def test_a_first_token_that_does_not_come_is_a_refusal() -> None:
    """Queue and prefill together are bounded, because clients stop waiting for a head sooner or later."""
    model = FakeModel([started(), Gate()])
    refusal = refused(model, body(stream=True), first_token_seconds=0.01)

    assert refusal.code == "capacity_unavailable"
    assert refusal.retry_after is not None
    assert model.generations[0].cancelled.is_set()


def test_the_head_waits_for_the_first_token() -> None:
    """A stream is not begun when the sequence starts, but when its first token is there."""
    gate = Gate()
    model = FakeModel([started(), gate, token("a"), finished("stop", 1)])

    async def story() -> None:
        node = Node("n1", [model], clock=CLOCK)
        record = Record(request_id="req_x", timing=Stopwatch(CLOCK.monotonic), method="POST")
        with node.admit(record, LOCAL) as in_flight:
            replying = asyncio.ensure_future(respond(node, in_flight, body(stream=True)))
            await asyncio.to_thread(gate.reached.wait, 5)
            assert not replying.done()
            gate.open()
            reply = await asyncio.wait_for(replying, 1)
            assert isinstance(reply, Stream)
        assert model.generations[0].cancelled.is_set()

    asyncio.run(story())


def test_an_answer_of_nothing_still_has_a_head() -> None:
    """A model that ends at once gives one empty message, streamed or not."""
    frames, _ = ask(FakeModel([started(), Finished(1, "stop", 7, 0, 1)]), body(stream=True))

    assert frames[-1]["type"] == "response.completed"
    assert frames[-1]["response"]["output"][0]["content"][0]["text"] == ""


def test_empty_tokens_count_as_the_first() -> None:
    """A token without bytes (half a character) is a token: the head goes out."""
    frames, record = ask(FakeModel([started(), Token(1, b""), finished("stop", 1)]), body(stream=True))

    assert frames[-1]["type"] == "response.completed"
    assert record.timing.get("ttft") is not None


@pytest.mark.parametrize("stream", [False, True])
def test_a_halt_reaches_a_request_that_waits_for_the_engine(*, stream: bool) -> None:
    """A node that stops ends a body with 503 and a stream with its error event, code node_unavailable."""
    gate = Gate()
    model = FakeModel([started(), token("half"), gate])

    async def story() -> list[dict[str, Any]] | Code:
        node = Node("n1", [model], clock=CLOCK)
        record = Record(request_id="req_x", timing=Stopwatch(CLOCK.monotonic), method="POST")

        async def halt() -> None:
            await asyncio.to_thread(gate.reached.wait, 5)
            node.halt()

        halting = asyncio.create_task(halt())
        try:
            with node.admit(record, LOCAL) as in_flight:
                reply = await respond(node, in_flight, body(stream=stream))
                assert isinstance(reply, Stream)
                return await told(reply)
        except Refusal as refusal:
            return refusal.code
        finally:
            await halting

    outcome = asyncio.run(story())

    assert model.generations[0].cancelled.is_set()
    if stream:
        assert not isinstance(outcome, str)
        assert [frame["type"] for frame in outcome[-2:]] == ["response.failed", "error"]
        assert outcome[-1]["code"] == "node_unavailable"
    else:
        assert outcome == "node_unavailable"


PIECES: list[bytes] = [b"a", "é".encode(), b"\xff", b"", b"\xe2\x82"]
REASONS: list[FinishReason] = ["stop", "length", "failed", "cancelled", "capacity"]
TROUBLES: list[Exception] = [
    Refusal("infer_backend_unavailable", "gone", retry_after=1),
    ZeroDivisionError("bug"),
]


@st.composite
def troubled(draw: st.DrawFn) -> list[Step]:
    """A script of a few tokens in any company, ending in any of the ways in which things end."""
    pieces = draw(st.lists(st.sampled_from(PIECES), max_size=6))
    end = draw(st.sampled_from([*REASONS, *TROUBLES]))
    outputs: list[Output] = [started(), *map(token, pieces)]
    if not isinstance(end, Exception):
        outputs.append(finished(end, len(pieces)))
    steps: list[Step] = []
    while outputs:
        size = draw(st.integers(1, len(outputs)))
        steps.append(tuple(outputs[:size]))
        outputs = outputs[size:]
    return [*steps, end] if isinstance(end, Exception) else steps


@given(troubled())
def test_a_stream_has_one_end_whatever_happens(script: list[Step]) -> None:
    """Under any fault a request is either refused before its head, or a stream without a gap and with one
    end.
    """
    log.configure("off")
    model = FakeModel(script)
    try:
        frames, record = ask(model, body(stream=True))
    except (Refusal, ZeroDivisionError):
        assert model.generations[0].cancelled.is_set()
        return
    kinds = [frame["type"] for frame in frames]
    ends = [
        kind for kind in kinds if kind in ("response.completed", "response.incomplete", "response.failed")
    ]

    assert [frame["sequence_number"] for frame in frames] == list(range(len(frames)))
    assert len(ends) == 1
    assert kinds[-1] == ("error" if ends == ["response.failed"] else ends[0])
    assert (
        frames[-1 if kinds[-1] != "error" else -2]["response"]["usage"]["output_tokens"]
        == record.output_tokens
    )
