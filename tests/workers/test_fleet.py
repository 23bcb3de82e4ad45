from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from b3node.workers.engine_client import DOWN_RETRY_SECONDS
from b3node.workers.timeouts import Timeouts
from tests.nodes import RunningFleet, running_fleet, until
from tests.zoo.zoo import Zoo

HELLO = [b"Hello", b", ", b"world", b"."]
BYE = [b"Good", b"bye."]


@pytest.fixture(scope="module")
def fleet(zoo: Zoo) -> Iterator[RunningFleet]:
    """One model with settings of its own, and one that takes the node's."""
    hello = {"path": str(zoo.scripted(HELLO)), "ctx": 64, "parallel": 2}
    with running_fleet({"hello": hello, "bye": zoo.scripted(BYE)}, ctx=128, parallel=3) as running:
        yield running


def test_a_prompt_is_answered_exactly(fleet: RunningFleet) -> None:
    """The model's answer arrives, whole, with its counts, and nothing else does."""
    answer = fleet.post("hello")

    assert answer.status == 200
    assert answer.text == "Hello, world."
    assert answer.json["status"] == "completed"
    assert answer.json["usage"]["output_tokens"] == len(HELLO) + 1  # the end of the turn is a token too


def test_two_models_answer_side_by_side(fleet: RunningFleet) -> None:
    """Each model has processes of its own, and each answer comes from the one that was asked."""
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(fleet.post, ["hello", "bye"] * 8))

    assert [answer.text for answer in answers] == ["Hello, world.", "Goodbye."] * 8
    models = [fleet.model(name) for name in ("hello", "bye")]
    pids = [model.engine.pid for model in models]
    pids += [worker.pid for model in models for worker in model._pool.workers]
    assert len(set(pids)) == 4
    assert None not in pids


def test_a_settled_node_is_ready(fleet: RunningFleet) -> None:
    """Once a node has settled it takes requests, and every model has decoded a token."""
    assert fleet.get("/readyz").json["status"] == "ready"


def test_a_models_own_settings_reach_its_engine(fleet: RunningFleet) -> None:
    """A model's table wins over the top level, which fills in what it leaves open."""
    facts = {name: fleet.model(name).facts for name in ("hello", "bye")}

    assert {name: (fact.n_ctx, fact.n_parallel) for name, fact in facts.items() if fact is not None} == {
        "hello": (64, 2),
        "bye": (128, 3),
    }


def broken_files(hello: Path, folder: Path) -> dict[str, Path]:
    """Model files that cannot be loaded, each for a reason of its own."""
    data = hello.read_bytes()
    contents = {"empty": b"", "garbage": bytes(range(256)) * 40, "cut": data[: len(data) // 2]}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return {name: folder / name for name in [*contents, "missing"]}


@pytest.fixture(scope="module")
def broken(zoo: Zoo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFleet]:
    """One model that works and several that cannot."""
    hello = zoo.scripted(HELLO)
    models = {"hello": hello, **broken_files(hello, tmp_path_factory.mktemp("broken"))}
    models["template"] = zoo.scripted(HELLO, template="{% if %}")
    with running_fleet(models, timeouts=Timeouts(pause=0.0, crashes=2)) as running:
        yield running


BROKEN = ["empty", "garbage", "cut", "missing", "template"]


def test_a_broken_model_leaves_the_others_alone(broken: RunningFleet) -> None:
    """The node is up and serves the others."""
    assert broken.post("hello").text == "Hello, world."
    assert broken.get("/healthz").status == 200


@pytest.mark.parametrize("name", BROKEN)
def test_a_model_that_cannot_be_loaded_is_unavailable(broken: RunningFleet, name: str) -> None:
    """A model that is known but broken answers 503 with `Retry-After`, never with the library's message."""
    answer = broken.post(name)

    assert (answer.status, answer.code) == (503, "infer_backend_unavailable")
    assert int(answer.headers["retry-after"]) >= 1
    assert "/" not in answer.json["error"]["message"]


@pytest.mark.parametrize("name", BROKEN)
def test_a_model_that_cannot_be_loaded_is_given_up(broken: RunningFleet, name: str) -> None:
    """After a few attempts it stays down, and says so: in the list of models and in `Retry-After`."""
    until(lambda: broken.model(name).state == "failed", f"{name} is given up")
    states = {model["id"]: model["b3os"]["state"] for model in broken.get("/v1/models").json["data"]}

    assert states[name] == "failed"
    assert states["hello"] == "ready"
    assert broken.post(name).headers["retry-after"] == str(DOWN_RETRY_SECONDS)


def test_a_node_with_a_broken_model_is_not_ready(broken: RunningFleet) -> None:
    """Readiness says which model does not decode."""
    answer = broken.get("/readyz")

    assert answer.status == 503
    assert {model["id"] for model in answer.json["models"] if not model["decodes"]} == set(BROKEN)


def test_an_unknown_model_is_not_found(broken: RunningFleet) -> None:
    """Only a name that is not configured is a 404."""
    answer = broken.post("other")

    assert (answer.status, answer.code) == (404, "model_not_available")


def test_a_model_file_that_comes_late_is_served(zoo: Zoo, tmp_path: Path) -> None:
    """A file that was missing at the start is read again, by the engine and by the prepare workers."""
    path = tmp_path / "late.gguf"
    with running_fleet({"late": path}, timeouts=Timeouts(pause=0.2, crashes=50)) as running:
        until(lambda: running.model("late")._pool.failed, "the file is found missing")
        assert running.model("late").state != "failed"
        (tmp_path / "whole").write_bytes(zoo.scripted(HELLO).read_bytes())
        (tmp_path / "whole").rename(path)
        until(lambda: running.model("late").state == "ready", "the engine has found it")

        assert running.post("late").text == "Hello, world."
