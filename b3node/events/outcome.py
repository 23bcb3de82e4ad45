"""Outcomes of a response. Usage and times, known only then, are other arguments of `Composer.finish`."""

from __future__ import annotations

from typing import Literal

import msgspec

from b3node.errors import Code


class Completed(msgspec.Struct, frozen=True):
    """The model ended its answer by itself."""


class Incomplete(msgspec.Struct, frozen=True):
    """The answer was cut: by `max_output_tokens`, or by the end of the context, which counts as the same."""

    reason: Literal["max_output_tokens"] = "max_output_tokens"


class Failed(msgspec.Struct, frozen=True):
    """The answer broke off; `code` and `message` are the node's own and fit for clients."""

    code: Code
    message: str
    param: str | None = None


Outcome = Completed | Incomplete | Failed
