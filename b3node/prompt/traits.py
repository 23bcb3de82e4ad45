"""The traits of a model that a client chooses by, as far as its template and vocabulary show them."""

from __future__ import annotations

from typing import Literal

import msgspec


class Traits(msgspec.Struct, frozen=True):
    """Traits found by letting the template write; see `traits_of`."""

    template: bool
    """Whether the file brought a template of its own."""
    system: Literal["turn", "user"]
    """Place of a system text: in a turn of its own, or before the first user's words."""
    tools: Literal["template", "text"]
    """Source of the list of functions: written by the template, or described in the system text."""
    parallel_calls: bool
    """Whether the model may make several calls in one turn."""
    reasoning: bool
    """Whether it can think."""
    control: Literal["none", "switch", "always"]
    """Control of thinking. A "switch" is the template's; a model that "always" thinks is kept from it by
    empty thinking in the prompt; "none" leaves it to the model, or it cannot think at all.
    """
