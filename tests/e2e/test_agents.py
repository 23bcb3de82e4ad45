"""The OpenAI Agents SDK against a running node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, TResponseInputItem
from openai import AsyncOpenAI

from tests.e2e.conftest import HELLO
from tests.nodes import NodeProcess

TEXT = b"".join(HELLO).decode()
QUIET = RunConfig(tracing_disabled=True)


@pytest.fixture
def with_agent(node: NodeProcess) -> Callable[[Callable[[Agent], Awaitable[str]]], str]:
    """Runs something with an agent whose model is the node's."""

    def run(work: Callable[[Agent], Awaitable[str]]) -> str:
        async def main() -> str:
            async with AsyncOpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0) as client:
                model = OpenAIResponsesModel("hello", client)
                return await work(Agent(name="Guide", instructions="Greet people.", model=model))

        return asyncio.run(main())

    return run


def test_an_agent_runs(with_agent) -> None:
    """One turn, its text as the final output."""

    async def work(agent: Agent) -> str:
        result = await Runner.run(agent, "Hi!", run_config=QUIET)
        return str(result.final_output)

    assert with_agent(work) == TEXT


def test_an_agent_streams(with_agent) -> None:
    """The deltas arrive on the way, and the run ends with the same text."""

    async def work(agent: Agent) -> str:
        result = Runner.run_streamed(agent, "Hi!", run_config=QUIET)
        deltas = [
            event.data.delta
            async for event in result.stream_events()
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        ]
        assert "".join(deltas) == TEXT
        return str(result.final_output)

    assert with_agent(work) == TEXT


def test_an_agent_goes_on_with_its_history(with_agent) -> None:
    """What the SDK replays of its first turn is taken as the history of the second."""

    async def work(agent: Agent) -> str:
        first = await Runner.run(agent, "Hi!", run_config=QUIET)
        history: list[TResponseInputItem] = [*first.to_input_list(), {"role": "user", "content": "Again!"}]
        return str((await Runner.run(agent, history, run_config=QUIET)).final_output)

    assert with_agent(work) == TEXT
