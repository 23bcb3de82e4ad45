"""What a model can do, as far as its template and its vocabulary show: for those who choose a model."""

from __future__ import annotations

from typing import Literal

import msgspec

from b3node.prompt.abilities import Abilities
from b3node.prompt.dialect import Learned
from b3node.prompt.thoughtform import ThoughtForm


class Traits(msgspec.Struct, frozen=True):
    """Found by letting the template write; see `abilities` and `dialect`.

    - `template`: whether the file brought a template of its own;
    - `system`: how a system text is told: in a turn of its own, or before the first user's words;
    - `tools`: how functions are told: by the template, or described in the system text;
    - `parallel_calls`: whether the model may make several calls in one turn;
    - `reasoning`: whether it can think;
    - `control`: what decides whether it thinks. A "switch" is the template's; a model that "always" thinks is kept
      from it by an empty thought; "none" leaves it to the model, or it cannot think at all.
    """

    template: bool
    system: Literal["turn", "user"]
    tools: Literal["template", "text"]
    parallel_calls: bool
    reasoning: bool
    control: Literal["none", "switch", "always"]


def traits(able: Abilities, learned: Learned, *, template: bool) -> Traits:
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
