"""Agent frameworks and SDKs against a real node: the base URL is all that is changed.

Each client is a program in an environment of its own (`programs`, `js`), which plays the same flows with a
node on tiny models that know the play (`play`). `make test-clients` installs the environments, runs this with
`B3NODE_CLIENTS=1`, and writes the table of results into the README.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from b3node.embedded import MODEL_ID, find
from tests.clients.play import pages
from tests.clients.roster import CLIENTS, JS, Client
from tests.nodes import NodeProcess, node_process
from tests.zoo.templates import THINKING
from tests.zoo.zoo import Zoo

ASKED = pytest.mark.skipif(
    "B3NODE_CLIENTS" not in os.environ, reason="clients are tried by `make test-clients`, which installs them"
)
RESULTS = Path(os.environ.get("B3NODE_CLIENTS_RESULTS", os.devnull))
"""Where a line about each flow is written, for the table."""


@pytest.fixture(scope="session")
def node(zoo: Zoo) -> Iterator[NodeProcess]:
    models = {
        "playbook": zoo.playbook(pages(), THINKING),
        "free": zoo.free_choice(template=THINKING),
        MODEL_ID: find(),
    }
    with node_process(models) as running:
        yield running


@pytest.fixture(scope="session")
def played(node: NodeProcess) -> Any:
    """What a client's program says of its flows; each program runs once."""
    runs: dict[str, dict[str, str | None]] = {}

    def play(client: Client) -> dict[str, str | None]:
        if client.name not in runs:
            runs[client.name] = _play(client, f"{node.url}/v1")
        return runs[client.name]

    return play


def _play(client: Client, url: str, *flows: str) -> dict[str, str | None]:
    """What went wrong in each flow that was played, None where nothing did."""
    done = subprocess.run(
        [*client.command, url, *flows],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
        env=client.environment,
    )
    print(done.stdout, done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"flow"')]
    return {line["flow"]: line["fault"] for line in lines}


@pytest.mark.parametrize(
    "client",
    [one for one in CLIENTS if one.package in {"openai", "openai-agents"} and one.home != JS],
    ids=lambda one: one.name,
)
def test_the_clients_of_this_environment_play(node: NodeProcess, client: Client) -> None:
    """OpenAI's own Python clients are at hand in every run; the embedded model, which takes seconds, is left
    out.
    """
    flows = [flow for flow in client.flows if flow != "embedded"]
    faults = _play(replace(client, home=Path(sys.prefix)), f"{node.url}/v1", *flows)

    assert faults == dict.fromkeys(flows)


@ASKED
@pytest.mark.parametrize(
    ("client", "flow"),
    [pytest.param(one, flow, id=f"{one.name}-{flow}") for one in CLIENTS for flow in one.flows],
)
def test_a_client_plays(played, client: Client, flow: str) -> None:
    """The flow comes to its end, and everything in it was as it had to be."""
    faults = played(client)
    fault = faults.get(flow, "the program ended before")
    with RESULTS.open("a", encoding="utf-8") as results:
        results.write(json.dumps({"client": client.name, "flow": flow, "fault": fault}) + "\n")
    assert fault is None


@ASKED
def test_no_program_plays_what_is_not_in_the_roster(played) -> None:
    """So that the table has all of it."""
    for client in CLIENTS:
        assert set(played(client)) == set(client.flows), client.name
