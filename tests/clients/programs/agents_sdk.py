"""The OpenAI Agents SDK for Python."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import trip
from agents import Agent, ModelSettings, OpenAIResponsesModel, RunConfig, Runner, function_tool
from agents.items import ReasoningItem, ToolCallItem
from openai import AsyncOpenAI
from openai.types.shared import Reasoning
from pydantic import BaseModel
from trip import flow, holds, same

QUIET = RunConfig(tracing_disabled=True)
TOOLS: Any = [function_tool(trip.weather), function_tool(trip.price)]


class Trip(BaseModel):
    city: str
    total: int


def agent(url: str, **settings: Any) -> Agent:
    model = OpenAIResponsesModel(
        settings.pop("model", trip.MODEL), AsyncOpenAI(base_url=url, api_key=trip.KEY, max_retries=0)
    )
    return Agent(name="planner", instructions="plan trips", model=model, **settings)


async def whole(agent: Agent, question: Any) -> Any:
    return await Runner.run(agent, question, run_config=QUIET)


async def streamed(agent: Agent, question: Any) -> Any:
    result = Runner.run_streamed(agent, question, run_config=QUIET)
    texts = [""]
    async for event in result.stream_events():
        if event.type == "raw_response_event":
            if event.data.type == "response.output_text.delta":
                texts[-1] += event.data.delta
            elif event.data.type == "response.output_text.done":
                same(texts[-1], event.data.text)
                texts.append("")
    return result


def both(check: Callable[[Any], None], agent: Agent, question: Any) -> None:
    """Runs the agent without streaming and with it, and checks each result."""

    async def main() -> None:
        for way in (whole, streamed):
            trip.called.clear()
            check(await way(agent, question))

    asyncio.run(main())


@flow
def text(url: str) -> None:
    async def main() -> None:
        planner = agent(url)
        first = await whole(planner, "Greet me")
        same(first.final_output, trip.HELLO)
        again = [*first.to_input_list(), {"role": "user", "content": "Greet me again"}]
        same((await whole(planner, again)).final_output, trip.HELLO)

    asyncio.run(main())


@flow
def stream(url: str) -> None:
    same(asyncio.run(streamed(agent(url), "Greet me")).final_output, trip.HELLO)


@flow
def structured(url: str) -> None:
    both(
        lambda result: same(result.final_output, Trip(**trip.PARIS)), agent(url, output_type=Trip), "to Paris"
    )


@flow
def tools(url: str) -> None:
    def check(result: Any) -> None:
        same(result.final_output, trip.OSLO)
        same(trip.called, trip.OSLO_CALLS)

    both(check, agent(url, tools=TOOLS), "a trip to Oslo")


@flow
def parallel(url: str) -> None:
    def check(result: Any) -> None:
        same(result.final_output, trip.BERGEN)
        same(sorted(trip.called, key=str), sorted(trip.BERGEN_CALLS, key=str))
        same(len(result.raw_responses), 2)

    settings = ModelSettings(parallel_tool_calls=True)
    both(check, agent(url, tools=TOOLS, model_settings=settings), "a trip to Bergen")


@flow
def final(url: str) -> None:
    def check(result: Any) -> None:
        same(result.final_output, Trip(**trip.TURIN))
        same(trip.called, trip.TURIN_CALLS)

    both(check, agent(url, tools=TOOLS, output_type=Trip), "a trip to Turin")


@flow
def reasoning(url: str) -> None:
    def check(result: Any) -> None:
        same(result.final_output, trip.OSLO)
        same(trip.called, trip.OSLO_CALLS)
        thoughts = [item.raw_item for item in result.new_items if isinstance(item, ReasoningItem)]
        same([thought.content[0].text.strip() for thought in thoughts], [trip.THOUGHT] * 3)

    settings = ModelSettings(reasoning=Reasoning(effort="low"))
    both(check, agent(url, tools=TOOLS, model_settings=settings), "a trip to Oslo")


def _forced(url: str, model: str) -> None:
    def check(names: set[str], result: Any) -> None:
        calls = [item.raw_item for item in result.new_items if isinstance(item, ToolCallItem)]
        holds(calls, f"a call: {result.new_items}")
        for call in calls:
            holds(call.name in names, f"{call.name} is one of {names}")
            same(set(json.loads(call.arguments)), {"city"} if call.name == "weather" else {"city", "nights"})

    for choice, names in [("required", {"weather", "price"}), ("price", {"price"})]:
        settings = ModelSettings(tool_choice=choice, temperature=0, max_tokens=600, parallel_tool_calls=False)
        once = {"model": model, "tools": TOOLS, "tool_use_behavior": "stop_on_first_tool"}
        both(partial(check, names), agent(url, model_settings=settings, **once), "hello")


@flow
def forced(url: str) -> None:
    _forced(url, trip.FREE)
    settings = ModelSettings(tool_choice="none")
    both(lambda result: same(trip.called, []), agent(url, tools=TOOLS, model_settings=settings), "Greet me")


@flow
def handoff(url: str) -> None:
    def check(result: Any) -> None:
        same(result.last_agent.name, "Quill")
        same(result.final_output, Trip(**trip.HULL))
        same(trip.called, trip.HULL_CALLS)

    quill = agent(url, output_type=Trip).clone(name="Quill", instructions="write the trip down")
    both(check, agent(url, tools=TOOLS, handoffs=[quill]), "a trip to Hull")


@flow
def embedded(url: str) -> None:
    _forced(url, trip.EMBEDDED)


trip.main()
