"""How a template is asked for reasoning: the contract's effort in the variables that templates know.

`low` and above turn the reasoning phase on, everything else leaves it off (contract, `reasoning.effort`). Most
templates have a switch (`enable_thinking`, `thinking`), some a scale whose words differ: a word is used only if
the template's source quotes it, because a template may refuse words it does not know or print them as they are.
"""

from __future__ import annotations

from typing import Final

from b3node.contract.request import Effort

_SCALES: Final = ("reasoning_effort", "thinking_effort", "reasoning_strength")
_OFF: Final = ("none", "no_think", "minimal", "low")
_ON: Final[dict[Effort, tuple[str, ...]]] = {
    "low": ("low",),
    "medium": ("medium", "high"),
    "high": ("high",),
    "xhigh": ("xhigh", "max", "high"),
}
"""The words for each effort, best first; the last one serves if the source quotes none of them."""


def reasons(effort: Effort | None) -> bool:
    """Whether an effort turns the reasoning phase on."""
    return effort in _ON


def variables(effort: Effort | None, source: str) -> dict[str, object]:
    """What a template with this source is told about reasoning."""
    thinks = reasons(effort)
    words = _ON.get(effort or "none", _OFF)
    word = next((word for word in words if f'"{word}"' in source or f"'{word}'" in source), words[-1])
    told: dict[str, object] = {
        "enable_thinking": thinks,
        "thinking": thinks,
        "thinking_mode": "enabled" if thinks else "disabled",
    }
    if not thinks:
        told["thinking_budget"] = 0
    return told | {scale: word for scale in _SCALES if scale in source}
