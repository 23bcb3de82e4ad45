"""instructor in its two Responses modes: an answer as a forced call, and as structured output."""

from __future__ import annotations

import instructor
import trip
from openai import OpenAI
from pydantic import BaseModel, Field
from trip import flow, holds


class Short(BaseModel):
    """A trip in few words, so that no model can go on for ever."""

    city: str = Field(max_length=12)
    nights: int = Field(ge=1, le=9)


def client(url: str) -> instructor.Instructor:
    plain = OpenAI(base_url=url, api_key=trip.KEY, max_retries=0)
    return instructor.from_openai(plain, mode=instructor.Mode.RESPONSES_TOOLS)


@flow
def forced(url: str) -> None:
    _forced(url, trip.FREE)


@flow
def stream(url: str) -> None:
    parts = list(
        client(url).responses.create_partial(
            model=trip.FREE, input="a trip to Umbria", response_model=Short, max_retries=0, temperature=0
        )
    )
    Short.model_validate(parts[-1].model_dump())
    holds(len(parts) > 1, "the trip comes in parts")


@flow
def embedded(url: str) -> None:
    _forced(url, trip.EMBEDDED)


def _forced(url: str, model: str) -> None:
    found = client(url).responses.create(
        model=model,
        input="A short trip to Oslo, two nights.",
        response_model=Short,
        max_retries=0,
        temperature=0,
    )
    holds(isinstance(found, Short), f"{found!r} is a trip")


trip.main()
