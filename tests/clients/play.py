"""The models of the client tests: what they say to whom, page by page.

The capitals that end a question or a function's result are the cues (`tests.zoo.playbook`);
`programs/trip.py` asks the questions and has the functions. Text forced by a grammar has tokens that a play
does not know (`tests.zoo.spelling`), so calls that are forced are asked of other models.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.zoo.playbook import Page, Said, call, words

THOUGHT = b"the weather decides"


def _json(value: Mapping[str, object]) -> list[Said]:
    members = json.dumps(value)[1:-1].split(", ")
    return [b"{", members[0].encode(), *(f", {member}".encode() for member in members[1:]), b"}"]


def pages() -> dict[str, Page]:
    """The play. Every page thinks, where thinking is on."""
    said: dict[str, list[Said]] = {
        # plain answers: "Greet me", "a trip to Paris"
        "G": words("Hello there, traveller."),
        "P": _json({"city": "Paris", "total": 100}),
        # two functions, one after the other: Oslo, Sunny, 240 Euro
        "O": call("weather", {"city": "Oslo"}),
        "S": call("price", {"city": "Oslo", "nights": 2}),
        "E": words("Go to Oslo: it is sunny, and two nights cost 240 euro."),
        # both at once: Bergen, 199 Kroner
        "B": [
            *call("weather", {"city": "Bergen"}),
            b"\n",
            *call("price", {"city": "Bergen", "nights": 3}),
        ],
        "K": words("Bergen is wet, and three nights cost 199 kroner."),
        # a structured answer at the end: Turin, Mild, Just 300
        "T": call("weather", {"city": "Turin"}),
        "M": call("price", {"city": "Turin", "nights": 2}),
        "J": _json({"city": "Turin", "total": 300}),
        # two functions, another agent, a structured answer: Hull, Foggy, Dear: 500, Quill
        "H": call("weather", {"city": "Hull"}),
        "F": call("price", {"city": "Hull", "nights": 1}),
        "D": call("transfer_to_quill", {}),
        "Q": _json({"city": "Hull", "total": 500}),
    }
    return {letter: Page(pieces, THOUGHT) for letter, pieces in said.items()}
