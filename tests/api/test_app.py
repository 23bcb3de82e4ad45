from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from b3node.api.app import create_app
from b3node.api.host_check import HostCheck
from b3node.api.models import model_list
from b3node.errors import HTTP, Code
from b3node.prompt.traits import Traits
from b3node.service.node import Node
from b3node.workers.served_model import ModelFacts
from tests.api.serving import Line, Running, ask, get, post, serving
from tests.service.fakes import MODEL, FakeModel, started

ID = re.compile("req_[0-7][0-9a-hjkmnp-tv-z]{25}")
TIMING = re.compile(r"\w+;dur=\d+\.\d(, \w+;dur=\d+\.\d)*")


@pytest.fixture(scope="module")
def node() -> Iterator[Running]:
    with serving(FakeModel(n_ctx=4096), FakeModel(name="tests/down", state="restarting")) as running:
        yield running


EVERY_ANSWER = {
    "200 list": get("/v1/models"),
    "200 body": post({}),
    "200 stream": post({"stream": True}),
    "204": get("/v1/models", method="OPTIONS"),
    "400": post(b"{"),
    "403": get("/v1/models", "Origin: https://evil.example"),
    "404 path": get("/nope"),
    "404 root": get("/"),
    "404 model": post({"model": "gpt-5"}),
    "405": get("/v1/responses"),
    "413": post(b" " * 200_000),
    "415": post({}, "Content-Type: text/plain"),
    "503": post({"model": "tests/down"}),
    "503 ready": get("/readyz"),
}


@pytest.mark.parametrize("name", EVERY_ANSWER)
def test_every_answer_has_its_own_id_and_its_timing(node: Running, name: str) -> None:
    """Whoever made the answer, it carries a new request id, whatever the client sent, and `Server-Timing`."""
    data = EVERY_ANSWER[name].replace(b"Host: localhost", b"Host: localhost\r\nX-Request-Id: mine", 1)
    first, second = ask(node, data), ask(node, data)

    assert first.status == second.status == int(name[:3])
    for answer in (first, second):
        assert ID.fullmatch(answer.headers["x-request-id"])
        assert TIMING.fullmatch(answer.headers["server-timing"])
        assert "server" not in answer.headers
    assert first.headers["x-request-id"] != second.headers["x-request-id"]


@pytest.mark.parametrize(
    ("data", "code", "param"),
    [
        (post(b"{"), "invalid_request", None),
        (post({"n": 2}), "unsupported_parameter", "n"),
        (get("/v1/models", "Origin: null"), "forbidden", None),
        (get("/v1/nothing"), "not_found", None),
        (post({"model": "gpt-5"}), "model_not_available", "model"),
        (post({"model": "../../etc/passwd"}), "model_not_available", "model"),
        (post({"model": "x" * 257}), "invalid_request", "model"),
        (get("/v1/responses"), "method_not_allowed", None),
        (post(b" " * 200_000), "payload_too_large", None),
        (post({}, "Content-Type: text/plain"), "unsupported_media_type", None),
        (post({"model": "tests/down"}), "infer_backend_unavailable", None),
    ],
)
def test_refusals_follow_the_table(node: Running, data: bytes, code: Code, param: str | None) -> None:
    """Each code has its status and its type, in OpenAI's error body with all four keys."""
    answer = ask(node, data)
    status, kind = HTTP[code]

    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    error = answer.json["error"]
    assert list(error) == ["message", "type", "param", "code"]
    assert (error["code"], error["type"], error["param"]) == (code, kind, param)
    assert 0 < len(error["message"]) <= 300
    assert node.logged(request_id=answer.headers["x-request-id"])["code"] == code


def test_a_hostile_model_name_stays_in_the_body(node: Running) -> None:
    """Nothing of a client's text gets into a header, and what gets into the log is escaped."""
    answer = ask(node, post({"model": "b3os/x\r\nX-Evil: 1\x1b[31m"}))
    line = node.logged(request_id=answer.headers["x-request-id"])

    assert answer.code == "model_not_available"
    assert not any("evil" in name + value.lower() for name, value in answer.headers.items())
    assert line["model"] == "b3os/x\r\nX-Evil: 1\x1b[31m"


@pytest.mark.parametrize(
    ("path", "method", "allow"),
    [
        ("/v1/responses", "GET", {"POST", "OPTIONS"}),
        ("/v1/infer/responses", "DELETE", {"POST", "OPTIONS"}),
        ("/v1/models", "PATCH", {"GET", "HEAD", "OPTIONS"}),
        ("/healthz", "PUT", {"GET", "HEAD", "OPTIONS"}),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(
    node: Running, path: str, method: str, allow: set[str]
) -> None:
    """405 comes with `Allow` (RFC 9110, section 15.5.6)."""
    answer = ask(node, get(path, method=method))

    assert answer.status == 405
    assert set(answer.headers["allow"].split(", ")) == allow


@pytest.mark.parametrize("path", ["/v1/models", "/v1/infer/models", "/healthz", "/schema/openapi.json"])
def test_head_is_get_without_a_body(node: Running, path: str) -> None:
    """HEAD has the length of what GET would have sent, and nothing else follows it on the connection."""
    with Line(node) as line:
        line.send(get(path, method="HEAD"))
        head = line.answer(to_head=True)
        whole = line.ask(get(path))

    assert (head.status, whole.status) == (200, 200)
    assert head.headers["content-length"] == whole.headers["content-length"]


def test_a_malformed_host_is_a_bad_request() -> None:
    """The router's own objections are told in our words."""
    with serving(FakeModel(), host_check=HostCheck(hosts=None)) as node:
        answer = ask(node, get("/healthz").replace(b"localhost", b"x/skip"))

    assert (answer.status, answer.code) == (400, "invalid_request")


def test_a_bug_is_a_500_with_nothing_but_the_id() -> None:
    """What an exception says stays in the log, under the id that the client is told."""
    with serving(FakeModel([started(), ZeroDivisionError("/etc/secret")])) as broken:
        answer = ask(broken, post({}))
        line = broken.logged(event="bug", request_id=answer.headers["x-request-id"])

    assert (answer.status, answer.code) == (500, "internal")
    assert answer.headers["x-request-id"] in answer.json["error"]["message"]
    assert "secret" not in answer.body.decode()
    assert "ZeroDivisionError: /etc/secret" in line["exception"]


class Broken(FakeModel):
    """A model that breaks the list of models."""

    @property
    def facts(self) -> ModelFacts | None:
        raise RuntimeError("secret")

    @facts.setter
    def facts(self, facts: ModelFacts | None) -> None:
        pass


def test_an_exception_outside_the_endpoint_is_a_500_too() -> None:
    """Any route's bug is caught by the same net."""
    with serving(Broken()) as node:
        answer = ask(node, get("/v1/models"))

    assert (answer.status, answer.code) == (500, "internal")


def test_the_models_are_an_openai_list(node: Running) -> None:
    """Both paths list the models with OpenAI's fields and ours, whatever their state."""
    first, second = ask(node, get("/v1/models")), ask(node, get("/v1/infer/models"))
    listed = first.json

    assert first.body == second.body
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == [MODEL, "tests/down"]
    assert listed["data"][0] == {
        "id": MODEL,
        "object": "model",
        "created": 1_700_000_000,
        "owned_by": "b3os",
        "b3os": {
            "state": "ready",
            "context_length": 4096,
            "max_request_bytes": 100_000,
            "supports_images": False,
            "supports_reasoning": True,
            "supports_tools": True,
            "supports_formats": True,
            "found": {
                "template": True,
                "system": "turn",
                "tools": {"told_by": "template", "parallel": True},
                "reasoning": {"supported": True, "control": "switch"},
            },
        },
    }
    assert listed["data"][1]["b3os"]["state"] == "restarting"


def test_a_model_that_never_loaded_has_no_context_yet() -> None:
    """What is not known before the first load is null."""
    model = FakeModel(state="loading")
    model.facts = model.traits = None
    listed = model_list(Node("n1", [model])).data[0].b3os

    assert (listed.context_length, listed.supports_reasoning, listed.found) == (None, None, None)


def test_a_model_that_cannot_think_says_so() -> None:
    """The node serves reasoning, this model has none."""
    model = FakeModel()
    model.traits = Traits(False, "user", "text", False, False, "none")
    listed = model_list(Node("n1", [model])).data[0].b3os

    assert listed.supports_reasoning is False
    assert listed.found
    assert (listed.found.template, listed.found.tools.told_by) == (False, "text")


def test_liveness_is_not_readiness(node: Running) -> None:
    """With one model down the process lives, and says of each model where it stands."""
    alive, ready = ask(node, get("/healthz")), ask(node, get("/readyz"))

    assert (alive.status, alive.json) == (200, {"node": "n1", "status": "ok"})
    assert ready.status == 503
    assert int(ready.headers["retry-after"]) >= 1
    assert ready.json == {
        "status": "not_ready",
        "node": "n1",
        "models": [
            {"id": MODEL, "state": "ready", "prepares": True, "decodes": True},
            {"id": "tests/down", "state": "restarting", "prepares": False, "decodes": False},
        ],
    }


def test_ready_is_200() -> None:
    """With every model decoding, the node can be sent requests; that is not worth a log line."""
    with serving(FakeModel()) as node:
        answer = ask(node, get("/readyz"))
        last = ask(node, get("/v1/models"))
        node.logged(request_id=last.headers["x-request-id"])
        quiet = [line for line in node.lines if line.get("request_id") == answer.headers["x-request-id"]]

    assert (answer.status, answer.json["status"]) == (200, "ready")
    assert quiet == []


def test_a_request_is_one_line_in_the_log(node: Running) -> None:
    """The line says what was asked, what it cost and how long it took, and nothing of what was said."""
    answer = ask(node, post({"input": "a secret question", "instructions": "a secret", "stream": True}))
    line = node.logged(request_id=answer.headers["x-request-id"])

    assert {name: line[name] for name in ("route", "method", "status", "model", "stream")} == {
        "route": "/v1/responses",
        "method": "POST",
        "status": 200,
        "model": MODEL,
        "stream": True,
    }
    assert (line["prompt_tokens"], line["cached_tokens"], line["output_tokens"]) == (7, 3, 3)
    assert line["finish_reason"] == "stop"
    assert line["bytes_out"] == len(answer.body)
    assert {"queue_ms", "prefill_ms", "ttft_ms", "model_ms", "total_ms"} <= set(line)
    assert "secret" not in str(line)
    assert "Hello" not in str(line)


def test_the_application_has_every_route() -> None:
    """The application is made whole: a node in, an ASGI application out."""
    app = create_app(Node("n1", [FakeModel()]))

    assert {route.path for route in app.routes} == {
        "/v1/infer/responses",
        "/v1/responses",
        "/v1/infer/models",
        "/v1/models",
        "/healthz",
        "/readyz",
        "/schema/openapi.json",
    }


def test_the_application_takes_no_library_for_being_installed() -> None:
    """A node starts without what is only there for others."""
    program = (
        "import sys; from b3node.api.app import create_app; from b3node.service.node import Node;"
        "create_app(Node('n', [])); print({'pydantic', 'openai'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"
