"""Texts of known length for the load, the same for every server; no two requests share one by chance.

Each word of `WORDS` is one token behind a space in SmolLM2's vocabulary (a test holds that), so a text of n
words is n tokens and the template around it. The seed tells scenario, repetition and client apart: a second
repetition finds nothing of the first in a cache.
"""

from __future__ import annotations

import random
from typing import Any, Final

WORDS: Final = [
    "river",
    "mountain",
    "garden",
    "winter",
    "summer",
    "market",
    "village",
    "bridge",
    "castle",
    "forest",
    "island",
    "harbor",
    "valley",
    "desert",
    "ocean",
    "city",
    "road",
    "train",
    "ship",
    "horse",
    "bird",
    "fish",
    "tree",
    "flower",
    "stone",
    "water",
    "fire",
    "light",
    "night",
    "morning",
    "evening",
    "friend",
    "teacher",
    "doctor",
    "farmer",
    "king",
    "queen",
    "child",
    "mother",
    "father",
    "sister",
    "brother",
    "story",
    "song",
    "dance",
    "game",
    "book",
    "letter",
    "paper",
    "window",
    "door",
    "table",
    "chair",
    "house",
    "school",
    "church",
    "museum",
    "theater",
    "hospital",
    "station",
    "airport",
    "bread",
    "cheese",
    "apple",
    "coffee",
    "sugar",
    "salt",
    "butter",
    "milk",
    "rice",
    "meat",
    "green",
    "blue",
    "white",
    "black",
    "silver",
    "golden",
    "small",
    "large",
    "quiet",
    "early",
    "late",
    "young",
    "ancient",
    "modern",
    "gentle",
    "strong",
    "simple",
    "clever",
    "hidden",
    "open",
    "broken",
    "perfect",
]

AGENT: Final = (
    "You are an agent that works step by step and answers each result with a plan for the next step. Notes:"
)
Body = dict[str, Any]


def words(seed: str, count: int) -> str:
    """`count` words, each behind a space, that `seed` decides."""
    draw = random.Random(seed)
    return "".join(f" {draw.choice(WORDS)}" for _ in range(count))


def story(model: str, seed: str, *, output: int, length: int = 8) -> Body:
    """A request whose answer is long and whose prompt has nothing in common with another one's."""
    return _body(model, f"{words(seed, length)}: write a long story about all of these.", output)


def question(model: str, prefix: str, seed: str, *, output: int) -> Body:
    """A request that shares `prefix` as its instructions with others, and asks something of its own."""
    return {**story(model, seed, output=output), "instructions": prefix}


def turn(model: str, prefix: str, history: list[Body], *, output: int) -> Body:
    """A request of a conversation: everything so far, with the new message as the last item."""
    return {**_body(model, list(history), output), "instructions": prefix}


def said(text: str) -> Body:
    """An answer as an item to send back."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "status": "completed", "content": content}


def result(seed: str, length: int) -> Body:
    """What the conversation's other side says: a tool's result, so to speak."""
    text = f"The result is{words(seed, length)}. What do you make of it, and what is next?"
    return {"type": "message", "role": "user", "content": text}


def _body(model: str, given: object, output: int) -> Body:
    return {"model": model, "input": given, "max_output_tokens": output, "temperature": 0.0}
