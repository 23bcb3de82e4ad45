"""instructor in its two Responses modes: an answer as a forced call, and as structured output."""

from __future__ import annotations

import instructor
import trip
from openai import OpenAI
from pydantic import BaseModel, Field
from trip import flow, holds, same


class Trip(BaseModel):
    city: str
    total: int


class Short(BaseModel):
    """A trip in few words, so that no model can go on for ever."""

    city: str = Field(max_length=12)
    nights: int = Field(ge=1, le=9)


def client(url: str) -> instructor.Instructor:
    plain = OpenAI(base_url=url, api_key=trip.KEY, max_retries=0)
    return instructor.from_openai(plain, mode=instructor.Mode.RESPONSES_TOOLS)


@flow
def forced(url: str) -> None:
    found = client(url).responses.create(
        model=trip.MODEL, input="a trip to Istanbul", response_model=Trip, max_retries=0
    )
    same(found.model_dump(), {"city": "Istanbul", "total": 70})


@flow
def stream(url: str) -> None:
    parts = list(
        client(url).responses.create_partial(
            model=trip.MODEL, input="a trip to Umbria", response_model=Trip, max_retries=0
        )
    )
    same(parts[-1].model_dump(), {"city": "Umbria", "total": 90})


@flow
def embedded(url: str) -> None:
    found = client(url).responses.create(
        model=trip.EMBEDDED,
        input="A short trip to Oslo, two nights.",
        response_model=Short,
        max_retries=0,
        temperature=0,
    )
    holds(isinstance(found, Short), f"{found!r} is a trip")


trip.main()
