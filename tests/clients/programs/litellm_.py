"""LiteLLM: its `responses`, and its chat completions over the Responses API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import litellm
import trip
from trip import flow, holds, same

litellm.telemetry = False
litellm.suppress_debug_info = True
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "name": "weather",
        "description": "Weather of a town",
        "parameters": trip.WEATHER_SCHEMA,
    },
    {
        "type": "function",
        "name": "price",
        "description": "Price of some nights",
        "parameters": trip.PRICE_SCHEMA,
    },
]
CHAT_TOOLS = [
    {"type": "function", "function": {key: value for key, value in tool.items() if key != "type"}}
    for tool in TOOLS
]
TEXT_FORMAT = {"format": {"type": "json_schema", "name": "trip", "schema": trip.TRIP_SCHEMA, "strict": True}}
CHAT_FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "trip", "schema": trip.TRIP_SCHEMA, "strict": True},
}


def whole(url: str, model: str = trip.MODEL, **parameters: Any) -> Any:
    return litellm.responses(
        model=f"openai/{model}", api_base=url, api_key=trip.KEY, num_retries=0, **_named(parameters)
    )


def streamed(url: str, model: str = trip.MODEL, **parameters: Any) -> Any:
    """The response of the stream's last event."""
    asked = _named(parameters)
    events = list(
        litellm.responses(
            model=f"openai/{model}", api_base=url, api_key=trip.KEY, num_retries=0, stream=True, **asked
        )
    )
    same(str(events[-1].type.value), "response.completed")
    return events[-1].response


def _named(parameters: dict[str, Any]) -> dict[str, Any]:
    return {"input": "Greet me", **parameters}


def chat(url: str, model: str = trip.MODEL, **parameters: Any) -> Any:
    """A message, through the bridge from chat completions."""
    answer = litellm.completion(
        model=f"openai/responses/{model}", api_base=url, api_key=trip.KEY, num_retries=0, **parameters
    )
    return answer.choices[0].message


def kinds(response: Any) -> list[str]:
    return [item.type for item in response.output]


def calls_of(response: Any) -> list[Any]:
    return [item for item in response.output if item.type == "function_call"]


def said(response: Any) -> str:
    return "".join(part.text for item in response.output if item.type == "message" for part in item.content)


def agent(ask: Callable[..., Any], url: str, question: str, **parameters: Any) -> tuple[Any, list[Any]]:
    """Calls functions until there is none to call. The last response, and those of all turns."""
    history: list[Any] = [{"role": "user", "content": question}]
    turns: list[Any] = []
    while len(turns) < 6:
        response = ask(url, input=history, tools=TOOLS, **parameters)
        turns.append(response)
        calls = calls_of(response)
        if not calls:
            return response, turns
        history += [
            dict(item) if isinstance(item, dict) else item.model_dump(exclude_none=True)
            for item in response.output
        ]
        for call in calls:
            result = trip.run(call.name, call.arguments)
            history.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    raise AssertionError(f"no end: {history}")


def chat_agent(url: str, question: str, **parameters: Any) -> tuple[str, int]:
    """The same through chat completions. The last text, and the number of turns."""
    messages: list[Any] = [{"role": "user", "content": question}]
    for turn in range(6):
        message = chat(url, messages=messages, tools=CHAT_TOOLS, **parameters)
        if not message.tool_calls:
            return message.content, turn + 1
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            result = trip.run(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    raise AssertionError(f"no end: {messages}")


@flow
def text(url: str) -> None:
    first = whole(url)
    same(said(first), trip.HELLO)
    history = [item.model_dump(exclude_none=True) for item in first.output]
    again = [{"role": "user", "content": "Greet me"}, *history, {"role": "user", "content": "Greet me again"}]
    same(said(whole(url, input=again)), trip.HELLO)
    same(chat(url, messages=[{"role": "user", "content": "Greet me"}]).content, trip.HELLO)


@flow
def stream(url: str) -> None:
    same(said(streamed(url)), trip.HELLO)
    messages = [{"role": "user", "content": "Greet me"}]
    chunks = litellm.completion(
        f"openai/responses/{trip.MODEL}", messages=messages, api_base=url, api_key=trip.KEY, stream=True
    )
    same("".join(chunk.choices[0].delta.content or "" for chunk in chunks), trip.HELLO)


@flow
def structured(url: str) -> None:
    same(json.loads(said(whole(url, input="a trip to Paris", text=TEXT_FORMAT))), trip.PARIS)
    messages = [{"role": "user", "content": "a trip to Paris"}]
    same(json.loads(chat(url, messages=messages, response_format=CHAT_FORMAT).content), trip.PARIS)


@flow
def tools(url: str) -> None:
    for ask in (whole, streamed):
        trip.called.clear()
        same(said(agent(ask, url, "a trip to Oslo")[0]), trip.OSLO)
        same(trip.called, trip.OSLO_CALLS)
    trip.called.clear()
    same(chat_agent(url, "a trip to Oslo"), (trip.OSLO, 3))
    same(trip.called, trip.OSLO_CALLS)


@flow
def parallel(url: str) -> None:
    for ask in (whole, streamed):
        trip.called.clear()
        response, turns = agent(ask, url, "a trip to Bergen", parallel_tool_calls=True)
        same((said(response), len(turns)), (trip.BERGEN, 2))
        same(trip.called, trip.BERGEN_CALLS)
    trip.called.clear()
    same(chat_agent(url, "a trip to Bergen", parallel_tool_calls=True), (trip.BERGEN, 2))
    same(trip.called, trip.BERGEN_CALLS)


@flow
def final(url: str) -> None:
    for ask in (whole, streamed):
        trip.called.clear()
        response, _ = agent(ask, url, "a trip to Turin", text=TEXT_FORMAT)
        same((json.loads(said(response)), trip.called), (trip.TURIN, trip.TURIN_CALLS))
    trip.called.clear()
    text, _ = chat_agent(url, "a trip to Turin", response_format=CHAT_FORMAT)
    same((json.loads(text), trip.called), (trip.TURIN, trip.TURIN_CALLS))


@flow
def reasoning(url: str) -> None:
    for ask in (whole, streamed):
        trip.called.clear()
        response, turns = agent(ask, url, "a trip to Oslo", reasoning={"effort": "low"})
        same((said(response), trip.called), (trip.OSLO, trip.OSLO_CALLS))
        same({kinds(turn)[0] for turn in turns}, {"reasoning"})
        holds(response.usage.output_tokens_details.reasoning_tokens, "reasoning is counted")


def _forced(url: str, model: str) -> None:
    for choice, names in [
        ("required", {"weather", "price"}),
        ({"type": "function", "name": "price"}, {"price"}),
    ]:
        for ask in (whole, streamed):
            response = ask(url, model, input="hello", tools=TOOLS, tool_choice=choice, **trip.SOBER)
            calls = calls_of(response)
            holds(calls and {call.name for call in calls} <= names, f"a call of {names}: {response.output}")
            for call in calls:
                expected = {"city"} if call.name == "weather" else {"city", "nights"}
                same(set(json.loads(call.arguments)), expected)


@flow
def forced(url: str) -> None:
    _forced(url, trip.FREE)
    same(kinds(whole(url, tools=TOOLS, tool_choice="none")), ["message"])


@flow
def embedded(url: str) -> None:
    _forced(url, trip.EMBEDDED)


trip.main()
