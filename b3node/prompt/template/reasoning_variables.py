"""Template variables that ask for reasoning, from the contract's effort.

`low` and above turn the thinking phase on, everything else leaves it off (contract, `reasoning.effort`). Most
templates have a switch (`enable_thinking`, `thinking`), some a scale whose words differ: a word is used only
if the template's source quotes it, because a template may refuse words it does not know or print them as they
are.
"""

from __future__ import annotations

from typing import Final

from b3node.contract.request import Effort

_SCALES: Final = ("reasoning_effort", "thinking_effort", "reasoning_strength")
_OFF_WORDS: Final = ("none", "no_think", "minimal", "low")
_ON_WORDS: Final[dict[Effort, tuple[str, ...]]] = {
    "low": ("low",),
    "medium": ("medium", "high"),
    "high": ("high",),
    "xhigh": ("xhigh", "max", "high"),
}
"""The words for each effort, best first; the last one serves if the source quotes none of them."""


def enables_thinking(effort: Effort | None) -> bool:
    """Returns whether an effort turns the thinking phase on."""
    return effort in _ON_WORDS


def reasoning_variables(effort: Effort | None, source: str) -> dict[str, object]:
    """Returns the variables about reasoning for a template with this source."""
    thinks = enables_thinking(effort)
    words = _ON_WORDS.get(effort or "none", _OFF_WORDS)
    word = next((word for word in words if f'"{word}"' in source or f"'{word}'" in source), words[-1])
    variables: dict[str, object] = {
        "enable_thinking": thinks,
        "thinking": thinks,
        "thinking_mode": "enabled" if thinks else "disabled",
    }
    if not thinks:
        variables["thinking_budget"] = 0
    return variables | {scale: word for scale in _SCALES if scale in source}
