"""The diagram agrees with the table of transitions, and the page with the diagram."""

from __future__ import annotations

import re
from pathlib import Path

from b3node.events.states import TABLE
from tests.events.diagram import mermaid


def test_the_diagram_has_every_transition_and_no_other() -> None:
    """One arrow a transition, with its actions, an arrow in and an arrow out."""
    arrows = re.findall(r"^    (\w+) --> (\w+): [a-z ]+ / ([a-z, ]+)$", mermaid(), re.MULTILINE)
    assert arrows == [
        (state.name, due.to.name, ", ".join(action.value for action in due.actions))
        for state, row in TABLE.items()
        for due in row.values()
    ]
    lines = mermaid().splitlines()
    assert lines[:2] == ["stateDiagram-v2", "    [*] --> NEW"]
    assert lines[-1] == "    ENDED --> [*]"
    assert len(lines) == len(arrows) + 3


def test_the_page_on_parsing_shows_this_very_diagram() -> None:
    """The picture of the states in docs/parsing.md is the one generated from the table."""
    page = (Path(__file__).parents[2] / "docs" / "parsing.md").read_text(encoding="utf-8")

    assert mermaid().strip() in page
