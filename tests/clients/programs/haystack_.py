"""haystack with its OpenAIResponsesChatGenerator, alone and in an Agent."""

from __future__ import annotations

import json
from typing import Any

import trip
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack.tools import Tool
from haystack.utils import Secret
from pydantic import BaseModel
from trip import flow, holds, same

TOOLS = [
    Tool(
        name="weather", description="Weather of a town", parameters=trip.WEATHER_SCHEMA, function=trip.weather
    ),
    Tool(name="price", description="Price of some nights", parameters=trip.PRICE_SCHEMA, function=trip.price),
]


class Trip(BaseModel):
    city: str
    total: int


def generator(url: str, model: str = trip.MODEL, **settings: Any) -> OpenAIResponsesChatGenerator:
    return OpenAIResponsesChatGenerator(
        api_key=Secret.from_token(trip.KEY), model=model, api_base_url=url, max_retries=0, **settings
    )


def ask(url: str, *messages: ChatMessage, model: str = trip.MODEL, **settings: Any) -> ChatMessage:
    found = generator(url, model, **settings)
    found.warm_up()
    return found.run(list(messages))["replies"][0]


def run(
    url: str, question: str, *, streaming: bool, strict: bool = False, **parameters: Any
) -> list[ChatMessage]:
    """All messages of an agent's run."""
    trip.called.clear()
    chunks: list[StreamingChunk] = []
    agent = Agent(
        chat_generator=generator(url, generation_kwargs=parameters, tools_strict=strict),
        tools=TOOLS,
        streaming_callback=chunks.append if streaming else None,
    )
    agent.warm_up()
    messages = agent.run([ChatMessage.from_user(question)])["messages"]
    same(bool(chunks), streaming)
    return messages


@flow
def text(url: str) -> None:
    first = ask(url, ChatMessage.from_user("Greet me"))
    same(first.text, trip.HELLO)
    again = ask(url, ChatMessage.from_user("Greet me"), first, ChatMessage.from_user("Greet me again"))
    same(again.text, trip.HELLO)


@flow
def stream(url: str) -> None:
    chunks: list[StreamingChunk] = []
    message = ask(url, ChatMessage.from_user("Greet me"), streaming_callback=chunks.append)
    same(message.text, trip.HELLO)
    same("".join(chunk.content for chunk in chunks), trip.HELLO)


@flow
def structured(url: str) -> None:
    message = ask(url, ChatMessage.from_user("a trip to Paris"), generation_kwargs={"text_format": Trip})
    same(json.loads(message.text or ""), trip.PARIS)


@flow
def tools(url: str) -> None:
    for streaming in (False, True):
        for strict in (False, True):
            same(run(url, "a trip to Oslo", streaming=streaming, strict=strict)[-1].text, trip.OSLO)
            same(trip.called, trip.OSLO_CALLS)


@flow
def parallel(url: str) -> None:
    for streaming in (False, True):
        same(
            run(url, "a trip to Bergen", streaming=streaming, parallel_tool_calls=True)[-1].text, trip.BERGEN
        )
        same(sorted(trip.called, key=str), sorted(trip.BERGEN_CALLS, key=str))


@flow
def final(url: str) -> None:
    form = {"format": {"type": "json_schema", "name": "trip", "schema": trip.TRIP_SCHEMA, "strict": True}}
    for streaming in (False, True):
        last = run(url, "a trip to Turin", streaming=streaming, text=form)[-1]
        same((json.loads(last.text or ""), trip.called), (trip.TURIN, trip.TURIN_CALLS))


@flow
def reasoning(url: str) -> None:
    for streaming in (False, True):
        messages = run(url, "a trip to Oslo", streaming=streaming, reasoning={"effort": "low"})
        same((messages[-1].text, trip.called), (trip.OSLO, trip.OSLO_CALLS))
        thoughts = [message.reasoning for message in messages if message.reasoning]
        same([thought.reasoning_text.strip() for thought in thoughts], [trip.THOUGHT] * 3)


def _forced(url: str, model: str) -> None:
    named = {"type": "function", "name": "price"}
    for choice, names in [("required", {"weather", "price"}), (named, {"price"})]:
        settings = {"tool_choice": choice, **trip.SOBER}
        message = ask(
            url, ChatMessage.from_user("hello"), model=model, tools=TOOLS, generation_kwargs=settings
        )
        calls = message.tool_calls
        holds(calls and {call.tool_name for call in calls} <= names, f"a call of {names}: {message}")
        for call in calls:
            same(set(call.arguments), {"city"} if call.tool_name == "weather" else {"city", "nights"})


@flow
def forced(url: str) -> None:
    _forced(url, trip.FREE)
    settings = {"tool_choice": "none"}
    same(
        ask(url, ChatMessage.from_user("Greet me"), tools=TOOLS, generation_kwargs=settings).text, trip.HELLO
    )


@flow
def embedded(url: str) -> None:
    _forced(url, trip.EMBEDDED)


trip.main()
