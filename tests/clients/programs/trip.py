"""What every program here plays: a trip planned with two functions, on models that know the play by heart.

`tests/clients/play.py` has the models' side of it. A program takes the base URL as its argument, runs its
flows one after the other, and prints a line of JSON about each: its name, and what went wrong, if anything.
"""

import json
import sys
import traceback
from collections.abc import Callable
from typing import Literal, get_args

MODEL, FREE, EMBEDDED = "playbook", "free", "smollm2-135m-instruct"
KEY = "none"

HELLO = "Hello there, traveller."
OSLO = "Go to Oslo: it is sunny, and two nights cost 240 euro."
BERGEN = "Bergen is wet, and three nights cost 199 kroner."
THOUGHT = "the weather decides"
PARIS = {"city": "Paris", "total": 100}
TURIN = {"city": "Turin", "total": 300}
HULL = {"city": "Hull", "total": 500}
TRIP_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "total": {"type": "integer"}},
    "required": ["city", "total"],
    "additionalProperties": False,
}
City = Literal["Oslo", "Bergen", "Turin", "Hull"]
CITY = {"type": "string", "enum": list(get_args(City))}
"""The towns are named, since a small model that is forced to call may otherwise never end a name."""
WEATHER_SCHEMA = {
    "type": "object",
    "properties": {"city": CITY},
    "required": ["city"],
    "additionalProperties": False,
}
PRICE_SCHEMA = {
    "type": "object",
    "properties": {"city": CITY, "nights": {"type": "integer"}},
    "required": ["city", "nights"],
    "additionalProperties": False,
}
_WEATHER = {"Oslo": "Sunny", "Bergen": "rain", "Turin": "Mild", "Hull": "Foggy"}
_PRICE = {
    ("Oslo", 2): "240 Euro",
    ("Bergen", 3): "199 Kroner",
    ("Turin", 2): "Just 300",
    ("Hull", 1): "Dear: 500",
}

SOBER = {"temperature": 0, "max_output_tokens": 600, "parallel_tool_calls": False}
"""How to force a model to call that would not stop by itself."""

called: list[tuple[str, object]] = []
"""The calls that the functions below have had since `forget`."""


def weather(city: City) -> str:
    """Tell the weather of a town."""
    called.append(("weather", {"city": city}))
    return _WEATHER.get(city, "unknown")


def price(city: City, nights: int) -> str:
    """Tell what some nights in a town cost."""
    called.append(("price", {"city": city, "nights": nights}))
    return _PRICE.get((city, nights), "unknown")


def run(name: str, arguments: str) -> str:
    """The result of a call as the model wrote it."""
    return {"weather": weather, "price": price}[name](**json.loads(arguments))


OSLO_CALLS = [("weather", {"city": "Oslo"}), ("price", {"city": "Oslo", "nights": 2})]
BERGEN_CALLS = [("weather", {"city": "Bergen"}), ("price", {"city": "Bergen", "nights": 3})]
TURIN_CALLS = [("weather", {"city": "Turin"}), ("price", {"city": "Turin", "nights": 2})]
HULL_CALLS = [("weather", {"city": "Hull"}), ("price", {"city": "Hull", "nights": 1})]


def same(found: object, expected: object) -> None:
    """Raises AssertionError with both values."""
    if found != expected:
        raise AssertionError(f"{found!r}, not {expected!r}")


def holds(what: object, meaning: str) -> None:
    """Raises AssertionError that says what should have been."""
    if not what:
        raise AssertionError(meaning)


Flow = Callable[[str], None]
_flows: dict[str, Flow] = {}


def flow(work: Flow) -> Flow:
    """Marks a flow; it is given the base URL."""
    _flows[work.__name__] = work
    return work


def main() -> None:
    """Runs the flows that were marked (those named behind the URL, if any), and prints how they went."""
    url, *wanted = sys.argv[1:]
    for name, work in _flows.items():
        if wanted and name not in wanted:
            continue
        called.clear()
        fault = None
        try:
            work(url)
        except BaseException as error:  # noqa: BLE001 - told in the line
            traceback.print_exc()
            fault = f"{type(error).__name__}: {error}"
        print(json.dumps({"flow": name, "fault": fault}), flush=True)
