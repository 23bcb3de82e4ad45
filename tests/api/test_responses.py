from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

import pytest

from b3node.engine.messages import Token
from b3node.service.node import NodeLimits
from tests.api.serving import Line, Running, ask, frames, post, serving
from tests.service.fakes import FakeModel, Gate, Step, finished, said, started, token


@pytest.fixture(scope="module")
def node() -> Iterator[Running]:
    with serving(FakeModel(said("Hell", "o", "!"), max_request_bytes=1_000_000)) as running:
        yield running


def reset(line: Line) -> None:
    """Drops a connection the hard way."""
    line.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.__exit__()


@pytest.mark.parametrize("path", ["/v1/infer/responses", "/v1/responses"])
def test_both_paths_answer_alike(node: Running, path: str) -> None:
    """The contract's path and the one that OpenAI clients build serve the same."""
    answer = ask(node, post({}, path=path))

    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["output"][0]["content"][0]["text"] == "Hello!"
    assert "total;dur=" in answer.headers["server-timing"]


def test_every_event_is_one_write(node: Running) -> None:
    """Each chunk of the body is exactly one event: its line, its data, an empty line, LF only."""
    with Line(node) as line:
        line.send(post({"stream": True}))
        status, headers = line.head()
        chunks = list(iter(line.chunk, b""))

    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
    assert headers["cache-control"] == "no-cache"
    for chunk in chunks:
        event, data, empty, end = chunk.split(b"\n")
        assert event.startswith(b"event: ")
        assert data.startswith(b'data: {"type":"' + event.removeprefix(b"event: "))
        assert (empty, end) == (b"", b"")
    assert chunks[-1].startswith(b"event: response.completed")


def test_a_streams_head_knows_the_first_token_and_no_total(node: Running) -> None:
    """`Server-Timing` of a stream breaks down what came before it and leaves the total out."""
    answer = ask(node, post({"stream": True}))
    timing = answer.headers["server-timing"]

    for phase in ("read", "parse", "prepare", "queue", "prefill", "ttft"):
        assert f"{phase};dur=" in timing
    assert "total" not in timing


def test_the_parts_of_an_answer_sum_to_its_total(node: Running) -> None:
    """The phases that do not overlap are within the total, up to rounding."""
    answer = ask(node, post({}))
    phases = dict(entry.split(";dur=") for entry in answer.headers["server-timing"].split(", "))
    parts = sum(float(phases[name]) for name in ("read", "parse", "prepare", "queue", "prefill"))

    assert parts <= float(phases["total"]) + 1
    assert float(phases["model"]) <= float(phases["total"]) + 0.1


def test_the_head_waits_for_the_first_token() -> None:
    """Nothing is sent while the prompt is worked on; then the head and the first events come at once."""
    gate = Gate()
    with serving(FakeModel([started(), gate, token("a"), finished("stop", 1)])) as node, Line(node) as line:
        line.send(post({"stream": True}))
        assert gate.reached.wait(5)
        line.socket.settimeout(0.1)
        with pytest.raises(TimeoutError):
            line.socket.recv(1)
        line.socket.settimeout(5)
        gate.open()
        # After a time-out a buffered reader is of no more use: read the socket.
        assert line.socket.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_before_the_head_frees_its_slot(*, stream: bool) -> None:
    """While a request waits for its first token, its client's leaving cancels it within a tenth of a
    second.
    """
    gate = Gate()
    model = FakeModel([started(), gate])
    with serving(model) as node:
        line = Line(node)
        line.send(post({"stream": stream}))
        assert gate.reached.wait(5)
        line.__exit__()

        assert model.generations[0].cancelled.wait(5)
        node.idle()
        assert node.logged(disconnect="before_head")["event"] == "request"


def test_a_client_that_leaves_while_its_prompt_is_made_never_reaches_the_engine() -> None:
    """Nothing is submitted for a request whose client is gone already."""
    gate = Gate()
    model = FakeModel()
    model.preparing = gate.wait
    with serving(model) as node:
        line = Line(node)
        line.send(post({}))
        assert gate.reached.wait(5)
        line.__exit__()
        node.idle()

        assert model.generations == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_in_the_middle_frees_its_slot(*, stream: bool) -> None:
    """A generation that nobody reads any more is cancelled, and counted to its last token."""
    gate = Gate()
    model = FakeModel([started(), token("a"), token("b"), gate])
    with serving(model) as node:
        line = Line(node)
        line.send(post({"stream": stream}))
        assert gate.reached.wait(5)
        reset(line)

        assert model.generations[0].cancelled.wait(5)
        record = node.logged(disconnect="mid_stream" if stream else "before_head")
    assert record["output_tokens"] == 2


def test_a_client_that_leaves_with_a_request_waiting_frees_its_slot() -> None:
    """A pipelined request does not hide from the one before it that both have lost their client."""
    gate = Gate()
    model = FakeModel([started(), token("a"), gate, *[token("b")] * 1_000, Gate()])
    with serving(model) as node:
        line = Line(node)
        line.send(post({"stream": True}) + post({"stream": True}))
        assert gate.reached.wait(5)
        reset(line)
        gate.open()

        assert model.generations[0].cancelled.wait(5)
        node.idle()
        assert node.logged(disconnect="mid_stream")["route"] == "/v1/responses"
        assert [line["event"] for line in node.lines] == ["request"]


def test_a_storm_of_resets_leaves_nothing_behind() -> None:
    """Three hundred clients that send and vanish, before and in their streams: all slots are free again."""
    scripts: list[list[Step]] = [[started(), Gate()], [started(), token("a"), Gate()]]
    model = FakeModel(*(scripts[number % 2] for number in range(301)))
    with serving(model, limits=NodeLimits(requests=400)) as node:
        lines = [Line(node) for _ in range(300)]
        for line in lines:
            line.send(post({"stream": True}))
        while node.node.in_flight + len(model.generations) < 600:
            time.sleep(0.005)
        for line in lines:
            reset(line)
        node.idle()

        assert len(model.generations) == 300
        assert all(generation.cancelled.is_set() for generation in model.generations)


@pytest.mark.parametrize("sips", [False, True])
def test_a_client_that_does_not_read_is_given_up(*, sips: bool) -> None:
    """When the kernel takes no more, a stream waits so long and no longer, also for one who reads byte by
    byte.
    """
    model = FakeModel([started(), *[Token(1, b"x" * 4_000)] * 4_000])
    with serving(model, stall_seconds=0.3) as node:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", node.port))
        with connection:
            connection.settimeout(5)
            connection.sendall(post({"stream": True}))
            connection.recv(1)
            while sips and node.node.in_flight:
                connection.recv(1)
                time.sleep(0.01)
            record = node.logged(disconnect="stalled")
            node.idle()

            assert model.generations[0].cancelled.is_set()
            heard = b"".join(iter(lambda: connection.recv(1 << 20), b""))
    # What the kernel had taken comes still, then the connection ends in the middle of the body.
    assert not heard.endswith(b"0\r\n\r\n")
    assert record["event"] == "request"
    assert model.generations[0].taken < 4_000


def test_a_slow_reader_gets_everything() -> None:
    """A client that reads slowly holds its stream back and loses nothing."""
    model = FakeModel([started(), *[Token(1, b"x" * 4_000)] * 400, finished("stop", 400)])
    with serving(model, stall_seconds=2) as node, Line(node) as line:
        line.send(post({"stream": True}))
        time.sleep(0.3)
        answer = line.answer()

    assert frames(answer)[-1]["response"]["output"][0]["content"][0]["text"] == "x" * 1_600_000


def test_a_full_node_answers_503_and_serves_again() -> None:
    """A request too many is refused at once with a time to wait; when one ends, the next is served."""
    gate = Gate()
    model = FakeModel([started(), gate, token("a"), finished("stop", 1)], said("b"))
    with serving(model, limits=NodeLimits(requests=1)) as node, Line(node) as line:
        line.send(post({}))
        assert gate.reached.wait(5)
        refused = ask(node, post({}))
        gate.open()

        assert line.answer().status == 200
        node.idle()
        assert ask(node, post({})).status == 200
    assert (refused.status, refused.code) == (503, "capacity_unavailable")
    assert int(refused.headers["retry-after"]) >= 1


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Type: text/plain",),
        ("X-Nothing: here",),
        ("Content-Type: application/json; charset=utf-16",),
        ("Content-Type: multipart/form-data; boundary=x",),
        ("Content-Type: application/json", "Content-Encoding: gzip"),
        ("Content-Type: application/json", "Content-Type: text/plain"),
    ],
)
def test_a_body_that_is_not_declared_json_is_refused_unread(node: Running, headers: tuple[str, ...]) -> None:
    """The type is judged from the head alone: the answer comes although the body never does."""
    with Line(node) as line:
        answer = line.ask(post(b"", *headers, length=100))

    assert (answer.status, answer.code, answer.json["error"]["param"]) == (
        415,
        "unsupported_media_type",
        None,
    )


def test_json_with_a_charset_is_json(node: Running) -> None:
    """`charset=utf-8` says nothing new and is welcome."""
    assert ask(node, post({}, "Content-Type: application/json; charset=utf-8")).status == 200


def test_a_nested_bomb_is_a_plain_refusal(node: Running) -> None:
    """A hundred thousand brackets are a 400 and not an internal error."""
    answer = ask(node, post(b"[" * 100_000))

    assert (answer.status, answer.code) == (400, "invalid_request")


def test_a_failure_in_the_middle_of_a_stream_is_told(node: Running) -> None:
    """The stream ends with `response.failed` and `error`, and its chunked body is complete."""
    with serving(FakeModel([started(), token("a"), finished("failed", 1)])) as broken:
        events = frames(ask(broken, post({"stream": True})))
        line = broken.logged(code="internal")

    assert [event["type"] for event in events[-2:]] == ["response.failed", "error"]
    assert line["status"] == 200
    assert line["level"] == "error"


def test_a_large_body_leaves_the_loop_free() -> None:
    """While megabytes are decoded, other requests are still answered."""
    model = FakeModel(max_request_bytes=20_000_000)
    with serving(model) as node, Line(node) as line:
        line.send(post(b"[" + b"{}," * 3_000_000 + b"{}]"))
        slowest = 0.0
        for _ in range(20):
            start = time.monotonic()
            with Line(node) as other:
                other.ask(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            slowest = max(slowest, time.monotonic() - start)

        assert line.answer().code == "invalid_request"
        assert slowest < 0.25
