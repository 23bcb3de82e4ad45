"""Events back to the response that they describe: the body of an answer without streaming.

The output is rebuilt event by event, as a client's accumulator does it, and not taken from the last event;
that the two agree is a property of the composer, and tested as such. Values that are unknown before the end
(status, usage, times, the extension) are the last event's.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from b3node.contract.events import (
    Event,
    FunctionCallArgumentsDelta,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    ReasoningTextDelta,
    ResponseCompleted,
    ResponseCreated,
    ResponseFailed,
    ResponseIncomplete,
)
from b3node.contract.response import (
    ItemStatus,
    OutputFunctionCall,
    OutputItem,
    OutputMessage,
    OutputReasoning,
    OutputText,
    ReasoningText,
    Response,
)
from b3node.events.states import OutOfOrderError


class Fold:
    """Accumulator of a stream's response; it keeps the answer, not the events."""

    def __init__(self) -> None:
        self._created: Response | None = None
        self._ended: Response | None = None
        self._output: list[OutputItem] = []
        self._item: OutputItem | None = None
        self._texts: list[str] = []

    def feed(self, event: Event) -> None:
        """Adds the next event.

        Raises:
            OutOfOrderError: an item is closed that is not open.
        """
        match event:
            case OutputTextDelta() | ReasoningTextDelta() | FunctionCallArgumentsDelta():
                self._texts.append(event.delta)
            case OutputItemAdded():
                self._item, self._texts = event.item, []
            case OutputItemDone():
                self._close(event.item.status)
            case ResponseCreated():
                self._created = event.response
            case ResponseCompleted() | ResponseIncomplete() | ResponseFailed():
                self._ended = event.response
            case _:
                pass  # the other events repeat these

    def finish(self) -> Response:
        """Returns the response; an item that is still open, as a failure leaves it, is incomplete.

        Raises:
            OutOfOrderError: the stream has no beginning or no end.
        """
        created, ended = self._created, self._ended
        if created is None or ended is None:
            raise OutOfOrderError("a stream begins with response.created and ends with its verdict")
        if self._item is not None:
            self._close("incomplete")
        return replace(
            created,
            status=ended.status,
            completed_at=ended.completed_at,
            error=ended.error,
            incomplete_details=ended.incomplete_details,
            output=tuple(self._output),
            usage=ended.usage,
            b3os=ended.b3os,
        )

    def _close(self, status: ItemStatus) -> None:
        if self._item is None:
            raise OutOfOrderError("no item is open")
        self._output.append(_written(self._item, "".join(self._texts), status))
        self._item = None


def fold(events: Iterable[Event]) -> Response:
    """Returns the response of a whole stream; raises as `Fold` does."""
    folding = Fold()
    for event in events:
        folding.feed(event)
    return folding.finish()


def _written(item: OutputItem, text: str, status: ItemStatus) -> OutputItem:
    match item:
        case OutputMessage():
            return replace(item, status=status, content=(OutputText(text),))
        case OutputReasoning():
            return replace(item, status=status, content=(ReasoningText(text),))
        case OutputFunctionCall():
            return replace(item, status=status, arguments=text)
