"""LangChain's ChatOpenAI with `use_responses_api`."""

from __future__ import annotations

import json
from typing import Any

import trip
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field
from trip import flow, holds, same

TOOLS = [tool(trip.weather), tool(trip.price)]


class Trip(BaseModel):
    """A trip."""

    city: str
    total: int


class Short(BaseModel):
    """A trip in few words: what is asked of models that know no play, so that none can go on for ever."""

    city: str = Field(max_length=12)
    nights: int = Field(ge=1, le=9)


def chat(url: str, model: str = trip.MODEL, **settings: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model=model, base_url=url, api_key=trip.KEY, use_responses_api=True, max_retries=0, **settings
    )


def whole(model: Any, messages: Any) -> AIMessage:
    return model.invoke(messages)


def streamed(model: Any, messages: Any) -> AIMessage:
    """The chunks of a stream, added up as LangChain's own agents do."""
    chunks = list(model.stream(messages))
    message = chunks[0]
    for chunk in chunks[1:]:
        message = message + chunk
    return message


def agent(ask: Any, model: Any, question: str) -> tuple[AIMessage, list[AIMessage]]:
    """Calls functions until there is none to call. The last message, and those of all turns."""
    messages: list[Any] = [HumanMessage(question)]
    said: list[AIMessage] = []
    while len(said) < 6:
        message = ask(model, messages)
        said.append(message)
        messages.append(message)
        if not message.tool_calls:
            return message, said
        for call in message.tool_calls:
            result = trip.run(call["name"], json.dumps(call["args"]))
            messages.append(ToolMessage(result, tool_call_id=call["id"]))
    raise AssertionError(f"no end: {messages}")


@flow
def text(url: str) -> None:
    model = chat(url)
    first = model.invoke("Greet me")
    same(first.text, trip.HELLO)
    same(model.invoke([HumanMessage("Greet me"), first, HumanMessage("Greet me again")]).text, trip.HELLO)


@flow
def stream(url: str) -> None:
    same(streamed(chat(url), "Greet me").text, trip.HELLO)


@flow
def structured(url: str) -> None:
    model = chat(url).with_structured_output(Trip, method="json_schema", strict=True)
    same(model.invoke("a trip to Paris"), Trip(**trip.PARIS))


@flow
def tools(url: str) -> None:
    for ask in (whole, streamed):
        trip.called.clear()
        message, _ = agent(ask, chat(url).bind_tools(TOOLS), "a trip to Oslo")
        same(message.text, trip.OSLO)
        same(trip.called, trip.OSLO_CALLS)


@flow
def parallel(url: str) -> None:
    for ask in (whole, streamed):
        trip.called.clear()
        message, said = agent(ask, chat(url).bind_tools(TOOLS, parallel_tool_calls=True), "a trip to Bergen")
        same(message.text, trip.BERGEN)
        same(trip.called, trip.BERGEN_CALLS)
        same(len(said), 2)


@flow
def final(url: str) -> None:
    for ask in (whole, streamed):
        trip.called.clear()
        message, _ = agent(
            ask, chat(url).bind_tools(TOOLS, response_format=Trip, strict=True), "a trip to Turin"
        )
        same(json.loads(message.text), trip.TURIN)
        same(trip.called, trip.TURIN_CALLS)


@flow
def reasoning(url: str) -> None:
    for ask in (whole, streamed):
        trip.called.clear()
        model = chat(url, reasoning={"effort": "low"}).bind_tools(TOOLS)
        message, said = agent(ask, model, "a trip to Oslo")
        same(message.text, trip.OSLO)
        same(trip.called, trip.OSLO_CALLS)
        for one in said:
            holds(any(block["type"] == "reasoning" for block in one.content), f"a reasoning block: {one}")
            holds(one.usage_metadata["output_token_details"]["reasoning"], "reasoning is counted")


def _forced(url: str, model: str) -> None:
    for choice, names in [("any", {"weather", "price"}), ("price", {"price"})]:
        bound = chat(url, model, temperature=0, max_tokens=600).bind_tools(
            TOOLS, tool_choice=choice, parallel_tool_calls=False
        )
        for ask in (whole, streamed):
            message = ask(bound, "hello")
            calls = message.tool_calls
            holds(calls and {call["name"] for call in calls} <= names, f"a call of {names}: {message}")
            for call in calls:
                same(set(call["args"]), {"city"} if call["name"] == "weather" else {"city", "nights"})


@flow
def forced(url: str) -> None:
    _forced(url, trip.FREE)
    same(chat(url).bind_tools(TOOLS, tool_choice="none").invoke("Greet me").text, trip.HELLO)
    as_call = chat(url, trip.FREE, temperature=0).with_structured_output(Short, method="function_calling")
    found = as_call.invoke("a trip to Istanbul")
    holds(isinstance(found, Short), f"{found!r} is a trip")


@flow
def embedded(url: str) -> None:
    _forced(url, trip.EMBEDDED)


trip.main()
