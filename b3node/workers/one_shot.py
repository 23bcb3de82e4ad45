"""Shows what becomes of a request before an engine sees it, in a child of its own: a person asks, and waits for it."""

from __future__ import annotations

import msgspec

from b3node.config import Budgets
from b3node.contract.request import Request
from b3node.prompt.prepared import Prepared
from b3node.prompt.traits import Traits
from b3node.workers.child_channel import Line
from b3node.workers.messages import PrepareFailed, Refused
from b3node.workers.spawn import spawn


class ShowOrder(msgspec.Struct, frozen=True, tag="show"):
    """Which model's template is to write which request; `now` is in seconds since 1970."""

    path: str
    n_ctx: int
    thinking: Budgets
    request: Request
    now: float


class ShownToken(msgspec.Struct, frozen=True):
    """A token of a prompt and its bytes. `special` tokens are those that a vocabulary matches as a whole."""

    id: int
    piece: bytes
    special: bool = False

    @property
    def text(self) -> str:
        """Its bytes as text, those that are none escaped."""
        return self.piece.decode(errors="backslashreplace")


class Shown(msgspec.Struct, frozen=True, tag="shown"):
    """A request as it would be submitted, and what is known of the model."""

    tokens: tuple[ShownToken, ...]
    text: str
    prepared: Prepared
    traits: Traits


FromShow = Shown | Refused | PrepareFailed


def show(order: ShowOrder) -> FromShow:
    """The request as the model would get it, or why it would not. Raises `EOFError` if the child died of it."""
    process, sock = spawn("b3node.workers.one_shot_process")
    with process, sock:
        line: Line[FromShow] = Line(sock, FromShow)  # type: ignore[arg-type]  # a union is a type to msgspec
        line.send(order)
        answer = line.next()
    if answer is None:
        raise EOFError
    return answer
