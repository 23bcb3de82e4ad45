"""The official OpenAI client."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import trip
from openai import OpenAI
from openai.types.responses import Response
from pydantic import BaseModel
from trip import flow, holds, same


class Trip(BaseModel):
    city: str
    total: int


TOOLS: list[Any] = [
    {"type": "function", "name": "weather", "description": "Weather of a town", "parameters": trip.WEATHER_SCHEMA,
     "strict": True},
    {"type": "function", "name": "price", "description": "Price of some nights", "parameters": trip.PRICE_SCHEMA,
     "strict": True},
]  # fmt: skip
FORMAT: Any = {"format": {"type": "json_schema", "name": "trip", "schema": trip.TRIP_SCHEMA, "strict": True}}


def client(url: str) -> OpenAI:
    return OpenAI(base_url=url, api_key=trip.KEY, max_retries=0)


def created(url: str) -> Callable[..., Response]:
    """Asks for a whole answer."""
    return client(url).responses.create


def streamed(url: str) -> Callable[..., Response]:
    """Asks for a stream, through the helper that accumulates it."""

    def ask(**parameters: Any) -> Response:
        with client(url).responses.stream(**parameters) as stream:
            deltas: dict[str, str] = {}
            for event in stream:
                if event.type == "response.function_call_arguments.delta":
                    deltas[event.item_id] = deltas.get(event.item_id, "") + event.delta
            final = stream.get_final_response()
        same(deltas, {item.id: item.arguments for item in final.output if item.type == "function_call"})
        return final

    return ask


def agent(ask: Callable[..., Response], question: str, **parameters: Any) -> tuple[Response, list[list[Any]]]:
    """Calls functions until there is none to call. The last answer, and the items of each turn."""
    history: list[Any] = [{"role": "user", "content": question}]
    turns: list[list[Any]] = []
    while len(turns) < 6:
        response = ask(model=trip.MODEL, input=history, tools=TOOLS, **parameters)
        turns.append(list(response.output))
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response, turns
        history += [
            item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output
        ]
        for call in calls:
            same(call.status, "completed")
            result = trip.run(call.name, call.arguments)
            history.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    raise AssertionError(f"no end: {history}")


@flow
def text(url: str) -> None:
    response = created(url)(model=trip.MODEL, input="Greet me")
    same((response.output_text, response.status), (trip.HELLO, "completed"))
    again = [
        *[item.model_dump(exclude_none=True) for item in response.output],
        {"role": "user", "content": "Greet"},
    ]
    same(created(url)(model=trip.MODEL, input=again).output_text, trip.HELLO)


@flow
def stream(url: str) -> None:
    same(streamed(url)(model=trip.MODEL, input="Greet me").output_text, trip.HELLO)


@flow
def structured(url: str) -> None:
    parsed = client(url).responses.parse(model=trip.MODEL, input="a trip to Paris", text_format=Trip)
    same(parsed.output_parsed, Trip(**trip.PARIS))


@flow
def tools(url: str) -> None:
    for ask in (created(url), streamed(url)):
        trip.called.clear()
        response, turns = agent(ask, "a trip to Oslo")
        same(response.output_text, trip.OSLO)
        same(trip.called, trip.OSLO_CALLS)
        same([[item.type for item in turn] for turn in turns], [["function_call"]] * 2 + [["message"]])


@flow
def parallel(url: str) -> None:
    for ask in (created(url), streamed(url)):
        trip.called.clear()
        response, turns = agent(ask, "a trip to Bergen", parallel_tool_calls=True)
        same(response.output_text, trip.BERGEN)
        same(trip.called, trip.BERGEN_CALLS)
        same(len(turns), 2)
    alone = created(url)(model=trip.MODEL, input="to Bergen", tools=TOOLS, parallel_tool_calls=False)
    same([item.type for item in alone.output], ["function_call"])


@flow
def final(url: str) -> None:
    for ask in (created(url), streamed(url)):
        trip.called.clear()
        response, _ = agent(ask, "a trip to Turin", text=FORMAT)
        same(json.loads(response.output_text), trip.TURIN)
        same(trip.called, trip.TURIN_CALLS)


@flow
def reasoning(url: str) -> None:
    for ask in (created(url), streamed(url)):
        trip.called.clear()
        response, turns = agent(ask, "a trip to Oslo", reasoning={"effort": "low"})
        same(response.output_text, trip.OSLO)
        same(trip.called, trip.OSLO_CALLS)
        for turn in turns:
            same(turn[0].type, "reasoning")
            same(turn[0].content[0].text.strip(), trip.THOUGHT)
        holds(
            response.usage and response.usage.output_tokens_details.reasoning_tokens, "reasoning is counted"
        )
    structured, _ = agent(created(url), "a trip to Turin", reasoning={"effort": "high"}, text=FORMAT)
    same(json.loads(structured.output_text), trip.TURIN)


def _forced(url: str, model: str) -> None:
    for ask in (created(url), streamed(url)):
        for choice, names in [
            ("required", {"weather", "price"}),
            ({"type": "function", "name": "price"}, {"price"}),
        ]:
            response = ask(model=model, input="hello", tools=TOOLS, tool_choice=choice, **trip.SOBER)
            calls = [item for item in response.output if item.type == "function_call"]
            holds(calls and {call.name for call in calls} <= names, f"a call of {names}: {response.output}")
            for call in calls:
                arguments = json.loads(call.arguments)
                same(set(arguments), {"city"} if call.name == "weather" else {"city", "nights"})
    response = created(url)(model=model, input="hello", tools=TOOLS, tool_choice="none", max_output_tokens=20)
    same({item.type for item in response.output}, {"message"})


@flow
def forced(url: str) -> None:
    _forced(url, trip.FREE)
    named = {"type": "function", "name": "price"}
    response = created(url)(model=trip.MODEL, input="a trip to Oslo", tools=TOOLS, tool_choice=named)
    same([getattr(item, "name", item.type) for item in response.output], ["price"])


@flow
def embedded(url: str) -> None:
    _forced(url, trip.EMBEDDED)


trip.main()
