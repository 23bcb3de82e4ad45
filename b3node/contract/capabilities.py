"""What this version of the node does not do yet: said plainly, before any work is spent on the request.

`decode` takes the whole contract; this is the shrinking list of what nothing behind it serves. Each flag that is
set true in `THIS_VERSION` takes its row out of the list. History is never refused here: earlier calls, their
outputs and thoughts are text to the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from b3node.contract.image import images
from b3node.contract.refused import Refused, refusal_of
from b3node.contract.request import Request


class Capabilities(msgspec.Struct, frozen=True):
    """What is served of the contract: function tools, answer formats, the reasoning phase, images."""

    tools: bool = False
    formats: bool = False
    reasoning: bool = False
    images: bool = False


THIS_VERSION: Final = Capabilities(tools=True, formats=True, reasoning=True)


def refuse_unsupported(request: Request, capabilities: Capabilities = THIS_VERSION) -> None:
    """Raises one `unsupported_parameter` that names all a request asks for beyond `capabilities`."""
    entries = list(_beyond(request, capabilities))
    if entries:
        raise refusal_of(entries, lead="This node does not serve this yet:")


def _beyond(request: Request, capabilities: Capabilities) -> Iterator[Refused]:
    if not capabilities.images:
        yield from (Refused(path, "images") for path, _ in images(request.input))
    if not capabilities.tools:
        yield from _tools(request)
    if not capabilities.formats and request.text_format.type != "text":
        yield Refused("text.format.type", f"text.format {request.text_format.type}")
    if not capabilities.reasoning and request.effort not in (None, "none", "minimal"):
        advice = 'Leave effort unset, or use "none" or "minimal".'
        yield Refused("reasoning.effort", f"reasoning.effort {request.effort}", advice)


def _tools(request: Request) -> Iterator[Refused]:
    if not request.tools or request.tool_choice.mode == "none":
        return
    yield Refused("tools", "function tools", 'Send no tools, or tool_choice "none".')
    if request.tool_choice.mode in ("required", "function"):
        yield Refused("tool_choice", f"tool_choice {request.tool_choice.mode}")
