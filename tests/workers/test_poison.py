"""Requests that end their engine: a real one, which aborts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from b3node.workers import engine_client
from b3node.workers.timeouts import Timeouts
from tests.nodes import Answer, RunningFleet, running_fleet
from tests.workers.mortal_engine import POISON
from tests.zoo.zoo import Zoo

ROOT = Path(__file__).parents[2]


@pytest.fixture
def node(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningFleet]:
    """A node that gives an engine up at its fifth death, as nodes do, and whose model never ends by
    itself.
    """
    monkeypatch.setattr(engine_client, "ENGINE", "tests.workers.mortal_engine")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    path = zoo.scripted([b"on ", b"and ", b"on "], end=0, n_layer=16)
    with running_fleet({"m": path}, timeouts=Timeouts(pause=0.0), parallel=8) as running:
        yield running


def persistent(node: RunningFleet, text: str, tokens: int) -> Answer:
    """Returns the last answer to a client that comes back as often as `Retry-After` says."""
    while (answer := node.post("m", text, max_output_tokens=tokens)).status == 503:
        time.sleep(0.05)
    return answer


def test_a_request_that_ends_its_engine_is_not_tried_a_third_time(node: RunningFleet) -> None:
    """It gets 503 with `Retry-After` twice; then a refusal. Others are served as before."""
    first = node.engine("m")
    told = [node.post("m", POISON)]
    second = node.engine("m")
    told.append(node.post("m", POISON))
    third = node.engine("m")
    told += [node.post("m", POISON), node.post("m", POISON, max_output_tokens=2)]

    assert [(answer.status, answer.code) for answer in told] == [
        (503, "infer_backend_unavailable"),
        (503, "infer_backend_unavailable"),
        (500, "internal"),
        (500, "internal"),
    ]
    assert len({first, second, third}) == 3
    assert node.engine("m") == third
    assert node.post("m", "hi", max_output_tokens=2).text == "on and "


def test_one_such_request_does_not_take_a_model_down(node: RunningFleet) -> None:
    """A request computed with it, and sent again with it each time, is served in the end, and it is
    not.
    """
    with ThreadPoolExecutor() as clients:
        innocent = [clients.submit(persistent, node, f"question {number}", 60) for number in range(6)]
        guilty = [clients.submit(persistent, node, POISON, 60) for _ in range(2)]

        assert {answer.result().code for answer in guilty} == {"internal"}
        assert [answer.result().status for answer in innocent] == [200] * 6
    assert node.model("m").state == "ready"
