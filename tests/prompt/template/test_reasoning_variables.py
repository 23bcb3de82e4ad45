"""The contract's effort becomes templates' variables."""

from __future__ import annotations

import pytest

from b3node.prompt.template.reasoning_variables import enables_thinking, reasoning_variables


@pytest.mark.parametrize("effort", [None, "none", "minimal"])
def test_reasoning_is_off_unless_it_is_asked_for(effort) -> None:
    """Unset, none and minimal leave the reasoning phase off."""
    assert not enables_thinking(effort)
    assert reasoning_variables(effort, "") == {
        "enable_thinking": False,
        "thinking": False,
        "thinking_mode": "disabled",
        "thinking_budget": 0,
    }


@pytest.mark.parametrize("effort", ["low", "medium", "high", "xhigh"])
def test_low_and_above_turn_reasoning_on(effort) -> None:
    """Every switch is on, and there is no budget."""
    assert reasoning_variables(effort, "") == {
        "enable_thinking": True,
        "thinking": True,
        "thinking_mode": "enabled",
    }


@pytest.mark.parametrize(
    ("effort", "source", "word"),
    [
        ("medium", "reasoning_effort == 'medium'", "medium"),
        ("medium", "reasoning_effort in ['low', \"high\", 'no_think']", "high"),
        ("xhigh", "reasoning_effort == 'max'", "max"),
        ("xhigh", "reasoning_effort", "high"),
        (None, "reasoning_effort in ['low', 'high', 'no_think']", "no_think"),
        (None, "reasoning_effort | lower == 'none'", "none"),
        ("minimal", "reasoning_effort", "low"),
    ],
)
def test_a_scale_gets_a_word_that_it_knows(effort, source, word) -> None:
    """A word is taken from those that the template's source quotes, else a common one."""
    assert reasoning_variables(effort, source)["reasoning_effort"] == word


def test_a_scale_that_a_template_does_not_have_is_not_set() -> None:
    """Only scales in the source are set."""
    assert "reasoning_effort" not in reasoning_variables("low", "thinking_effort")
