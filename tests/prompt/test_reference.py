"""Prompts are, byte for byte, those of the reference implementation of chat templates for the same messages.

`make test-reference` installs it, into an environment of its own.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from b3node.contract.request import Effort, Request
from b3node.prompt.template.conversation import normalise
from tests.prompt.conversations import CONVERSATIONS, quoting
from tests.prompt.corpus import ALL, markers_in, source
from tests.prompt.given import NOW, Written, write

PYTHON: Final = Path(__file__).parents[2] / ".venv-reference" / "bin" / "python"
PROGRAM: Final = Path(__file__).with_name("reference.py")
EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)

EASED: Final = {
    "Kimi-K2-Instruct": "lists",
    "Kimi-K2-Thinking": "lists",
    "llama-cpp-deepseek-r1": "generators",
    "meetkai-functionary-medium-v3.1": "markup",
}
"""Templates that the reference refuses, or writes otherwise than meant, and the rules eased for a
comparison at all.

Kimi K2's queue its calls in a list, which the reference's sandbox forbids. The one of llama.cpp for R1 gives
`tojson` a generator. Functionary 3.1 marks its JSON as `safe`, for which the reference writes HTML escapes
into whatever is joined to it: `&lt;` in a function's description, `&#34;` for each quote of its schema.
"""

STEERED: Final = {
    "HuggingFaceTB-SmolLM3-3B": "takes /think and /no_think in the system text as switches, and removes them",
    "LFM2.5-Instruct": "cuts an earlier answer at a </think>",
    "NVIDIA-Nemotron-Nano-v2": "takes /think and /no_think in anybody's text as switches, and removes them",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "cuts an answer at a </think>",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "cuts an answer at a </think>",
    "llama-cpp-deepseek-r1": "cuts an answer at a </think>",
    "llama-cpp-rwkv-world": "cuts an answer at a </think>",
    "openbmb-MiniCPM5-1B": "puts the functions where a system text says <tool_def_sep>, and calls where an answer does",
}
"""Templates whose logic looks for words in clients' texts, and how. No client's words steer ours (see
`provenance`): an answer that spells a marker is written whole, and `effort` alone switches reasoning."""

Ask = Callable[[str, str, list[dict[str, Any]]], list[str]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Texts of the reference for a template's name, its eased rules, and values; an error reads `!` and
    its name.
    """
    if not PYTHON.exists():
        pytest.skip("the reference implementation is not installed: make test-reference")
    programs: dict[str, subprocess.Popen[str]] = {}

    def answers(name: str, eased: str, given: list[dict[str, Any]]) -> list[str]:
        if eased not in programs:
            programs[eased] = subprocess.Popen(
                [PYTHON, PROGRAM, *eased.split()],
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        program = programs[eased]
        assert program.stdin
        assert program.stdout
        job = {"template": source(name), "now": NOW.replace(tzinfo=None).isoformat(), "given": given}
        program.stdin.write(json.dumps(job) + "\n")
        program.stdin.flush()
        return [got.get("text", "!" + got.get("error", "")) for got in json.loads(program.stdout.readline())]

    yield answers
    for program in programs.values():
        program.communicate("")


def differing(name: str, ask: Ask, asked: dict[str, Request], eased: str) -> dict[str, tuple[str, str]]:
    """Returns the differences from the reference: both texts from a little before the place on."""
    ours: dict[str, Written] = {}
    for place, (which, request) in enumerate(asked.items()):
        effort = EFFORTS[(place + len(name)) % len(EFFORTS)]
        ours[which] = write(name, normalise(request), effort)
    theirs = ask(name, eased, [got.given for got in ours.values()])
    return {
        which: _from_difference(got.plain, text)
        for (which, got), text in zip(ours.items(), theirs, strict=True)
        if got.plain != text
    }


def _from_difference(one: str, two: str) -> tuple[str, str]:
    same = next(
        (n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two))
    )
    return one[max(0, same - 40) : same + 80], two[max(0, same - 40) : same + 80]


@pytest.mark.parametrize("name", ALL)
def test_every_conversation_is_written_like_the_reference_does(name, ask) -> None:
    """Each at one effort, so that each effort is tried on many."""
    assert differing(name, ask, CONVERSATIONS, EASED.get(name, "")) == {}


@pytest.mark.parametrize("name", ALL)
def test_every_effort_is_written_like_the_reference_does(name, ask) -> None:
    """The switches and scales that a template knows mean the same."""
    asked = {
        f"{which} {n}": CONVERSATIONS[which]
        for which in ("plain", "ended_loops")
        for n in range(len(EFFORTS))
    }

    assert differing(name, ask, asked, EASED.get(name, "")) == {}


@pytest.mark.parametrize("name", ALL)
def test_markers_that_clients_quote_are_written_like_the_reference_does(name, ask) -> None:
    """They are text there too, but for templates that let words steer them."""
    got = differing(name, ask, {"quoting": quoting(markers_in(name))}, EASED.get(name, ""))

    assert (got != {}) == (name in STEERED), got


@pytest.mark.parametrize("name", EASED)
def test_the_reference_is_eased_only_where_it_must_be(name, ask) -> None:
    """Without that it writes something else, or nothing."""
    try:
        source(name)
    except FileNotFoundError:
        pytest.skip("the shared templates are not here")

    assert differing(
        name, ask, {name: CONVERSATIONS[name] for name in ("call", "odd_tools", "three_at_once")}, ""
    )
