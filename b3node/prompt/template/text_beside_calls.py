"""Placement of the text that a model wrote next to its calls, for templates that write no text there.

Many templates write either a turn's text or its calls, some write the text after the calls, some refuse a
text next to thinking. The text then moves to another place; none of it is lost.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from b3node.contract.request import TextPart
from b3node.prompt.template.conversation import PARAGRAPH, AssistantTurn, Turn, UserTurn

TextPlacement = Literal["text", "thinking", "turn", "apart"]
"""Place of the text: `text`: unchanged. `thinking`: at the end of the turn's thinking. `turn`: in a turn of
its own before the calls. `apart`: the same, and an empty user turn between the two, for templates that count
turns."""

TEXT_PLACEMENTS: Final[tuple[TextPlacement, ...]] = ("text", "thinking", "turn", "apart")
"""From the most faithful placement to the one that every template can write."""

SILENT_USER: Final = UserTurn((TextPart(""),))
"""An empty user turn, where a template insists on one."""


def place_text(turn: AssistantTurn, placement: TextPlacement) -> tuple[Turn, ...]:
    """Returns the turns that replace a turn with calls, its text put in `placement`."""
    if not turn.text or placement == "text":
        return (turn,)
    if placement == "thinking":
        thinking = PARAGRAPH.join(words for words in (turn.reasoning, turn.text) if words)
        return (replace(turn, text="", reasoning=thinking),)
    between = (SILENT_USER,) if placement == "apart" else ()
    return (AssistantTurn(turn.text), *between, replace(turn, text=""))
