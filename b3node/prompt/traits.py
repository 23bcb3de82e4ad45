"""What a model can do, as far as its template and its vocabulary show: for those who choose a model."""

from __future__ import annotations

from typing import Literal

import msgspec


class Traits(msgspec.Struct, frozen=True):
    """Found by letting the template write; see `portrait`.

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
