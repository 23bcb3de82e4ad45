"""A model's traits, from what its template was found to write."""

from __future__ import annotations

from typing import Literal

from b3node.prompt.probe.dialect import Learned
from b3node.prompt.probe.thinking_format import ThoughtForm
from b3node.prompt.template.capabilities import Abilities
from b3node.prompt.traits import Traits


def portrait(able: Abilities, learned: Learned, *, template: bool) -> Traits:
    """The traits of a model whose template for functions has these abilities and of which this was learned."""
    return Traits(
        template,
        "turn" if able.system else "user",
        "template" if able.tools and not learned.explained else "text",
        not learned.calls.alone,
        learned.thoughts is not None,
        _control(learned.thoughts),
    )


def _control(thoughts: ThoughtForm | None) -> Literal["none", "switch", "always"]:
    if thoughts is None:
        return "none"
    return "switch" if thoughts.switch else "always" if thoughts.always else "none"
