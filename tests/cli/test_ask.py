from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner, Result

from b3node.cli.ask import for_terminal
from b3node.cli.main import main
from tests.nodes import RunningFleet, running_fleet
from tests.zoo.zoo import Zoo


@pytest.fixture(scope="module")
def node(zoo: Zoo) -> Iterator[RunningFleet]:
    models = {
        "hello": zoo.scripted([b"Hello", b", ", b"w\xc3", b"\xb6rld", b"!"]),
        "bye": zoo.scripted([b"Bye."]),
    }
    with running_fleet(models) as running:
        yield running


def ask(url: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["ask", "Are you there?", "--url", url, *arguments])


def test_the_answer_of_a_running_node_is_printed(node: RunningFleet) -> None:
    """The text on stdout and nothing else; the usage on stderr."""
    result = ask(node.url)

    assert (result.exit_code, result.stdout) == (0, "Hello, wörld!\n")
    assert "6 out; first token after" in result.stderr


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
def test_a_node_is_found_by_whatever_address_a_person_has_at_hand(node: RunningFleet, end: str) -> None:
    """Its URL, the base URL of an SDK, or just host and port."""
    assert ask(node.url + end).exit_code == 0
    assert ask(node.url.removeprefix("http://") + end).exit_code == 0


def test_another_model_may_be_asked(node: RunningFleet) -> None:
    """By its name."""
    assert ask(node.url, "--model", "bye").stdout == "Bye.\n"


def test_an_answer_that_is_cut_is_said_to_be(node: RunningFleet) -> None:
    """At the limit that was asked for; a single token has no speed."""
    result = ask(node.url, "--max-output-tokens", "1")

    assert (result.exit_code, result.stdout) == (0, "Hello\n")
    assert "1 out (cut at the limit)" in result.stderr
    assert "tokens/s" not in result.stderr


def test_a_refusal_is_told_in_the_nodes_own_words(node: RunningFleet) -> None:
    """Exit status 1 and the message."""
    result = ask(node.url, "--model", "gpt-5")

    assert (result.exit_code, result.stdout) == (1, "")
    assert 'Error: This node serves no model called "gpt-5"' in result.stderr


@contextmanager
def answering(data: bytes) -> Iterator[str]:
    """Something that is not a node: sends `data` to each client, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(60)


def test_no_node_is_told_with_the_command_that_starts_one() -> None:
    """Where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    result = ask(f"http://127.0.0.1:{port}")

    assert result.exit_code == 1
    assert f"Error: no node answers at http://127.0.0.1:{port}; start one with: b3node serve" in result.stderr


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"data":[]}',
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
    ],
)
def test_something_else_that_answers_is_told(data: bytes) -> None:
    """Not every server is a node."""
    with answering(data) as url:
        result = ask(url)

    assert result.exit_code == 1
    assert f"Error: what answers at {url} is not a node" in result.stderr


@pytest.mark.parametrize("data", [b"", b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_something_that_does_not_speak_http_is_no_node(data: bytes) -> None:
    """Nor one that hangs up."""
    with answering(data) as url:
        result = ask(url)

    assert result.exit_code == 1
    assert f"Error: no node answers at {url}" in result.stderr


@pytest.mark.parametrize("url", ["http://", "ftp://127.0.0.1", "http://127.0.0.1:port", "nonsense"])
def test_an_address_that_is_none_is_no_node(url: str) -> None:
    """A slip of the hand is not a traceback."""
    result = ask(url)

    assert result.exit_code == 1
    assert "Error: no node answers at" in result.stderr


@pytest.mark.parametrize(
    "rest", [b"", b'b\r\ndata: {"type"', b'26\r\ndata: {"type":"response.in_progress"}\n\n\r\n0\r\n\r\n']
)
def test_a_node_that_goes_away_is_told(rest: bytes) -> None:
    """A stream that just ends, wherever it does, is not an answer."""
    delta = b'data: {"type":"response.output_text.delta","delta":"Hel"}\n\n'
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with answering(head + f"{len(delta):x}\r\n".encode() + delta + b"\r\n" + rest) as url:
        result = ask(url, "--model", "m")

    assert (result.exit_code, result.stdout) == (1, "Hel\n")
    assert "Error: the node went away in the middle of its answer" in result.stderr


def test_an_answer_that_fails_is_told() -> None:
    """Text so far stays; the error event's message follows."""
    frames = (
        b'data: {"type":"response.output_text.delta","delta":"Hel"}\n\n'
        b'data: {"type":"response.failed","response":{}}\n\n'
        b'data: {"type":"error","code":"infer_backend_unavailable","message":"The model runtime is gone."}\n\n'
    )
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(frames)}\r\n\r\n".encode()
    with answering(head + frames) as url:
        result = ask(url, "--model", "m")

    assert (result.exit_code, result.stdout) == (1, "Hel\n")
    assert "Error: The model runtime is gone." in result.stderr


def test_a_model_cannot_move_the_cursor() -> None:
    """Control characters are replaced; lines, tabs and every script are not."""
    assert (
        for_terminal("a\x1b[2Jb\rc\x9bd\n\té 中")
        == "a\N{REPLACEMENT CHARACTER}[2Jb\N{REPLACEMENT CHARACTER}c\N{REPLACEMENT CHARACTER}d\n\té 中"
    )
