"""pydantic-ai with its OpenAIResponsesModel."""

from __future__ import annotations

import asyncio
from typing import Any

import trip
from openai import AsyncOpenAI
from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.direct import model_request_sync
from pydantic_ai.messages import ModelRequest, ModelResponse, ThinkingPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition
from trip import flow, holds, same


class Trip(BaseModel):
    city: str
    total: int


TOOLS = [trip.weather, trip.price]


class Short(BaseModel):
    """A trip in few words: what is asked of models that know no play, so that none can go on for ever."""

    city: str = Field(max_length=12)
    nights: int = Field(ge=1, le=9)


def connected(url: str, model: str = trip.MODEL) -> OpenAIResponsesModel:
    provider = OpenAIProvider(openai_client=AsyncOpenAI(base_url=url, api_key=trip.KEY, max_retries=0))
    return OpenAIResponsesModel(model, provider=provider)


def agent(url: str, output: Any = str, **settings: Any) -> Agent[None, Any]:
    chosen: Any = OpenAIResponsesModelSettings(**settings.pop("model_settings", {}))
    return Agent(
        connected(url, settings.pop("model", trip.MODEL)),
        output_type=output,
        instructions="plan trips",
        model_settings=chosen,
        **settings,
    )


def responses(result: Any) -> list[ModelResponse]:
    return [message for message in result.all_messages() if isinstance(message, ModelResponse)]


def both(check: Any, url: str, question: str, output: Any = str, **settings: Any) -> None:
    """Runs the agent without streaming and with it, and checks each result and output."""

    async def main() -> None:
        trip.called.clear()
        result = await agent(url, output, **settings).run(question)
        check(result, result.output)
        trip.called.clear()
        async with agent(url, output, **settings).run_stream(question) as streamed:
            said = await streamed.get_output()
            check(streamed, said)

    asyncio.run(main())


@flow
def text(url: str) -> None:
    async def main() -> None:
        planner = agent(url)
        first = await planner.run("Greet me")
        same(first.output, trip.HELLO)
        again = await planner.run("Greet me again", message_history=first.all_messages())
        same(again.output, trip.HELLO)

    asyncio.run(main())


@flow
def stream(url: str) -> None:
    async def main() -> None:
        async with agent(url).run_stream("Greet me") as result:
            said = [delta async for delta in result.stream_text(delta=True, debounce_by=None)]
            same("".join(said), trip.HELLO)

    asyncio.run(main())


@flow
def structured(url: str) -> None:
    both(lambda _, said: same(said, Trip(**trip.PARIS)), url, "a trip to Paris", NativeOutput(Trip))


@flow
def tools(url: str) -> None:
    def check(_: Any, said: Any) -> None:
        same((said, trip.called), (trip.OSLO, trip.OSLO_CALLS))

    both(check, url, "a trip to Oslo", tools=TOOLS)


@flow
def parallel(url: str) -> None:
    def check(result: Any, said: Any) -> None:
        same(said, trip.BERGEN)
        same(sorted(trip.called, key=str), sorted(trip.BERGEN_CALLS, key=str))
        same(len(responses(result)), 2)

    both(check, url, "a trip to Bergen", tools=TOOLS, model_settings={"parallel_tool_calls": True})


@flow
def final(url: str) -> None:
    def check(_: Any, said: Any) -> None:
        same((said, trip.called), (Trip(**trip.TURIN), trip.TURIN_CALLS))

    both(check, url, "a trip to Turin", NativeOutput(Trip), tools=TOOLS)


@flow
def reasoning(url: str) -> None:
    def check(result: Any, said: Any) -> None:
        same((said, trip.called), (trip.OSLO, trip.OSLO_CALLS))
        for response in responses(result):
            thoughts = [part for part in response.parts if isinstance(part, ThinkingPart)]
            holds(thoughts, f"a thought: {response}")
            same(_thought(thoughts[0]), trip.THOUGHT)

    both(check, url, "a trip to Oslo", tools=TOOLS, model_settings={"openai_reasoning_effort": "low"})


def _thought(part: ThinkingPart) -> str:
    """A raw thought is kept beside the summary, which is empty here."""
    raw = (part.provider_details or {}).get("raw_content") or [part.content]
    return "".join(raw).strip()


def _forced(url: str, model: str) -> None:
    """One request, since an agent must be able to answer in the end."""
    declared = [
        ToolDefinition(name="weather", parameters_json_schema=trip.WEATHER_SCHEMA),
        ToolDefinition(name="price", parameters_json_schema=trip.PRICE_SCHEMA),
    ]
    for choice, names in [("required", {"weather", "price"}), (["price"], {"price"})]:
        response = model_request_sync(
            connected(url, model),
            [ModelRequest.user_text_prompt("hello")],
            model_settings={
                "tool_choice": choice,
                "temperature": 0,
                "max_tokens": 600,
                "parallel_tool_calls": False,
            },
            model_request_parameters=ModelRequestParameters(function_tools=declared),
        )
        calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
        holds(calls and {call.tool_name for call in calls} <= names, f"a call of {names}: {response}")
        for call in calls:
            same(set(call.args_as_dict()), {"city"} if call.tool_name == "weather" else {"city", "nights"})


@flow
def forced(url: str) -> None:
    _forced(url, trip.FREE)
    settings = {"tool_choice": "none"}
    both(lambda _, said: same(said, trip.HELLO), url, "Greet me", tools=TOOLS, model_settings=settings)
    both(
        lambda _, said: holds(isinstance(said, Short), f"{said!r} is a trip"),
        url,
        "a trip to Lima",
        Short,
        model=trip.FREE,
        model_settings={"temperature": 0},
    )


@flow
def embedded(url: str) -> None:
    _forced(url, trip.EMBEDDED)


trip.main()
