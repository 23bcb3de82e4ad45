"""A node with one slot: who waits, who is turned away, and what a client that leaves gives back."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from tests.nodes import NodeProcess, node_process
from tests.zoo.zoo import Zoo


@pytest.fixture(scope="module")
def busy(zoo: Zoo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """One sequence runs, one may wait."""
    endless = zoo.scripted([b"on ", b"and ", b"on "], end=0, n_layer=64)
    config = tmp_path_factory.mktemp("busy") / "node.toml"
    config.write_text(f'parallel = 1\nqueue = 1\nqueue_seconds = 200\n[models.m]\npath = "{endless}"\n')
    with node_process(None, "--config", str(config)) as running:
        yield running


def test_a_client_that_leaves_frees_its_slot(busy: NodeProcess) -> None:
    """Closing a stream in the middle ends its sequence, and whoever waits goes on at once."""
    with openai.OpenAI(base_url=f"{busy.url}/v1", api_key="none", max_retries=0) as ai:
        with ai.responses.create(model="m", input="Hi!", stream=True) as stream:
            first = next(event for event in stream if event.type == "response.created")
        second = ai.responses.create(model="m", input="Hi!", temperature=0, max_output_tokens=3)

    assert second.output_text == "on and on "
    line = busy.logged(response_id=first.response.id)
    assert line["disconnect"] == "mid_stream"
    assert line["output_tokens"] < 4000  # its context would have held that many


def test_a_client_that_leaves_while_it_waits_frees_its_place(busy: NodeProcess) -> None:
    """Who gives up before the first token is not served after all, and the next one may wait instead."""
    with ThreadPoolExecutor() as pool:
        with busy.stream("m") as stream:
            stream.until("response.output_text.delta")
            with (
                openai.OpenAI(base_url=f"{busy.url}/v1", api_key="none", max_retries=0, timeout=1.0) as hasty,
                pytest.raises(openai.APITimeoutError),
            ):
                hasty.responses.create(model="m", input="Hi!")
            line = busy.logged(disconnect="before_head")
            asked = pool.submit(busy.post, "m", max_output_tokens=3)
            stream.until("response.output_text.delta")
        answer = asked.result()

    assert "output_tokens" not in line
    assert answer.text == "on and on "


def test_a_full_queue_turns_away(busy: NodeProcess) -> None:
    """One runs, one waits, the third hears 503 and when to come back; the one that waited is served."""
    with ThreadPoolExecutor() as pool, busy.stream("m") as stream:
        stream.until("response.output_text.delta")
        asked = [pool.submit(busy.post, "m", max_output_tokens=3) for _ in range(2)]
        while not (refused := [future.result() for future in asked if future.done()]):
            stream.until("response.output_text.delta")
        served = next(future for future in asked if not future.done())

    assert [(answer.status, answer.code) for answer in refused] == [(503, "capacity_unavailable")]
    assert int(refused[0].headers["retry-after"]) >= 1
    assert served.result().text == "on and on "
