"""The ends of prompts, for every family and effort."""

from __future__ import annotations

from pathlib import Path

import pytest

from b3node.prompt.ending import PromptEnd, end_prompt
from b3node.prompt.probe.samples import Samples
from tests.prompt.corpus import ALL, assert_as_reviewed, compiled, learned

GOLDEN = Path(__file__).parent / "golden" / "endings.txt"
KINDS = (("off", "none", False), ("on", "high", False), ("on, with a grammar", "high", True))


def ending(name, effort, *, grammar=False, calls=False) -> PromptEnd:
    rendered = Samples(*compiled(name)).prompt(effort)
    return end_prompt(rendered, learned(name), thinks=effort == "high", grammar=grammar, calls=calls)


def described(name: str) -> str:
    """Returns the three ends of a prompt, after the user's last word or at most 120 characters."""
    lines = [f"== {name}"]
    for words, effort, grammar in KINDS:
        end = ending(name, effort, grammar=grammar)
        _, _, tail = end.rendered.rpartition("curlew")
        flags = " thinking" * end.thinking + " answering" * end.answering
        lines.append(f"{words:19}{tail[-120:]!r}{flags}{f' begun {end.begun!r}' if end.begun else ''}")
    return "\n".join(lines)


def test_the_ends_of_prompts_are_known() -> None:
    """A golden file for people: how each template ends a prompt for each effort."""
    assert_as_reviewed(GOLDEN, described)


@pytest.mark.parametrize("name", ALL)
def test_no_prompt_thinks_unless_asked_to(name) -> None:
    """Off: no prompt ends in thinking; on with a grammar: every one does whose model is known to think."""
    form = learned(name).thinking
    assert not ending(name, "none").thinking
    if form and (form.always or form.switch):
        assert ending(name, "high", grammar=True).thinking


@pytest.mark.parametrize("name", ALL)
def test_a_forced_call_never_stands_inside_the_text(name) -> None:
    """Where a prompt ends inside the marked text, that is closed before the call."""
    assert not ending(name, "none", grammar=True, calls=True).answering
