"""LlamaIndex with its OpenAIResponses model, alone and in a FunctionAgent."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import trip
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAIResponses
from pydantic import BaseModel
from trip import flow, holds, same

TOOLS = [FunctionTool.from_defaults(trip.weather), FunctionTool.from_defaults(trip.price)]


class Trip(BaseModel):
    city: str
    total: int


def llm(url: str, model: str = trip.MODEL, **settings: Any) -> OpenAIResponses:
    return OpenAIResponses(
        model, api_base=url, api_key=trip.KEY, max_retries=0, context_window=8192, **settings
    )


def run(url: str, question: str, *, streaming: bool, **settings: Any) -> str:
    """What an agent says in the end."""

    async def main() -> str:
        allow = settings.pop("allow_parallel_tool_calls", True)
        agent = FunctionAgent(
            tools=TOOLS, llm=llm(url, **settings), streaming=streaming, allow_parallel_tool_calls=allow
        )
        return str(await agent.run(user_msg=question))

    trip.called.clear()
    return asyncio.run(main())


@flow
def text(url: str) -> None:
    first = llm(url).chat([ChatMessage("Greet me")])
    same(first.message.content, trip.HELLO)
    again = [ChatMessage("Greet me"), first.message, ChatMessage("Greet me again")]
    same(llm(url).chat(again).message.content, trip.HELLO)


@flow
def stream(url: str) -> None:
    chunks = list(llm(url).stream_chat([ChatMessage("Greet me")]))
    same(chunks[-1].message.content, trip.HELLO)
    same("".join(chunk.delta or "" for chunk in chunks), trip.HELLO)


@flow
def structured(url: str) -> None:
    same(llm(url).structured_predict(Trip, PromptTemplate("a trip to Paris")), Trip(**trip.PARIS))


@flow
def tools(url: str) -> None:
    for streaming in (False, True):
        same(run(url, "a trip to Oslo", streaming=streaming), trip.OSLO)
        same(trip.called, trip.OSLO_CALLS)


@flow
def parallel(url: str) -> None:
    for streaming in (False, True):
        same(run(url, "a trip to Bergen", streaming=streaming), trip.BERGEN)
        same(sorted(trip.called, key=str), sorted(trip.BERGEN_CALLS, key=str))


@flow
def final(url: str) -> None:
    form = {"format": {"type": "json_schema", "name": "trip", "schema": trip.TRIP_SCHEMA, "strict": True}}
    for streaming in (False, True):
        said = run(url, "a trip to Turin", streaming=streaming, additional_kwargs={"text": form})
        same((json.loads(said), trip.called), (trip.TURIN, trip.TURIN_CALLS))


@flow
def reasoning(url: str) -> None:
    # `reasoning_options` are sent to models of certain names only
    options = {"reasoning": {"effort": "low"}}
    for streaming in (False, True):
        same(run(url, "a trip to Oslo", streaming=streaming, additional_kwargs=options), trip.OSLO)
        same(trip.called, trip.OSLO_CALLS)
    message = llm(url, additional_kwargs=options).chat([ChatMessage("Greet me")]).message
    same(
        [block.content.strip() for block in message.blocks if block.block_type == "thinking"], [trip.THOUGHT]
    )
    same(message.content, trip.HELLO)


def _forced(url: str, model: str) -> None:
    asked = llm(url, model, temperature=0.0, max_output_tokens=600)
    named = {"type": "function", "name": "price"}
    for choice, names in [("required", {"weather", "price"}), (named, {"price"})]:
        answer = asked.chat_with_tools(
            TOOLS, "hello", chat_history=[], tool_choice=choice, allow_parallel_tool_calls=False
        )
        calls = asked.get_tool_calls_from_response(answer)
        holds(calls and {call.tool_name for call in calls} <= names, f"a call of {names}: {answer}")
        for call in calls:
            same(set(call.tool_kwargs), {"city"} if call.tool_name == "weather" else {"city", "nights"})


@flow
def forced(url: str) -> None:
    _forced(url, trip.FREE)
    answer = llm(url).chat_with_tools(TOOLS, "Greet me", chat_history=[], tool_choice="none")
    same(answer.message.content, trip.HELLO)


@flow
def embedded(url: str) -> None:
    _forced(url, trip.EMBEDDED)


trip.main()
