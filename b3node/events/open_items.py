"""The open item of a response: the events that open, extend and close it.

There are two families. A message and a reasoning item have one content part, which opens and closes inside
the item; a call has its arguments directly. Every event takes the next sequence number from the response's
own counter at the moment it is made, so an open item must make its events in the order in which they are
sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

from b3node.contract.events import (
    ContentPartAdded,
    ContentPartDone,
    Event,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    OutputTextDone,
    ReasoningTextDelta,
    ReasoningTextDone,
)
from b3node.contract.response import (
    ItemStatus,
    OutputFunctionCall,
    OutputItem,
    OutputMessage,
    OutputReasoning,
    OutputText,
    ReasoningText,
)

NextNumber = Callable[[], int]


class OpenItem(Protocol):
    """An open item."""

    def open(self) -> list[Event]:
        """Returns the events that show the item, empty; called first."""

    def extend(self, text: str) -> Event:
        """Returns the event that adds `text`."""

    def close(self, status: ItemStatus) -> list[Event]:
        """Returns the events that end the item with all its text; called last."""

    def item(self, status: ItemStatus) -> OutputItem:
        """Returns the item with its text so far, under `status`; modifies nothing."""


class _OpenText:
    """Common part of messages and reasoning items: one content part, at index 0."""

    part: ClassVar[type[OutputText | ReasoningText]]
    delta: ClassVar[type[OutputTextDelta | ReasoningTextDelta]]
    done: ClassVar[type[OutputTextDone | ReasoningTextDone]]

    def __init__(self, number: NextNumber, item_id: str, output_index: int) -> None:
        self._number = number
        self._id = item_id
        self._index = output_index
        self._texts: list[str] = []

    def open(self) -> list[Event]:
        return [
            OutputItemAdded(self._number(), self._index, self._bare()),
            ContentPartAdded(self._number(), self._id, self._index, 0, self.part("")),
        ]

    def extend(self, text: str) -> Event:
        self._texts.append(text)
        return self.delta(self._number(), self._id, self._index, 0, text)

    def close(self, status: ItemStatus) -> list[Event]:
        text = "".join(self._texts)
        return [
            self.done(self._number(), self._id, self._index, 0, text),
            ContentPartDone(self._number(), self._id, self._index, 0, self.part(text)),
            OutputItemDone(self._number(), self._index, self.item(status)),
        ]

    def _bare(self) -> OutputItem:
        raise NotImplementedError

    def item(self, status: ItemStatus) -> OutputItem:
        raise NotImplementedError


class OpenMessageItem(_OpenText):
    """An open message."""

    part = OutputText
    delta = OutputTextDelta
    done = OutputTextDone

    def _bare(self) -> OutputItem:
        return OutputMessage(self._id, "in_progress")

    def item(self, status: ItemStatus) -> OutputItem:
        """Returns the message with its text so far."""
        return OutputMessage(self._id, status, content=(OutputText("".join(self._texts)),))


class OpenReasoningItem(_OpenText):
    """An open reasoning item."""

    part = ReasoningText
    delta = ReasoningTextDelta
    done = ReasoningTextDone

    def _bare(self) -> OutputItem:
        return OutputReasoning(self._id, "in_progress")

    def item(self, status: ItemStatus) -> OutputItem:
        """Returns the reasoning item with its text so far."""
        return OutputReasoning(self._id, status, content=(ReasoningText("".join(self._texts)),))


class OpenCallItem:
    """An open call of the function `name`."""

    def __init__(self, number: NextNumber, item_id: str, output_index: int, call_id: str, name: str) -> None:
        self._number = number
        self._id = item_id
        self._index = output_index
        self._call_id = call_id
        self._name = name
        self._texts: list[str] = []

    def open(self) -> list[Event]:
        """Returns the event that shows the call with its name; it has no parts."""
        return [OutputItemAdded(self._number(), self._index, self.item("in_progress"))]

    def extend(self, text: str) -> Event:
        """Returns the event that adds `text` to the arguments."""
        self._texts.append(text)
        return FunctionCallArgumentsDelta(self._number(), self._id, self._index, text)

    def close(self, status: ItemStatus) -> list[Event]:
        """Returns the events with all arguments; a completed call without any gets `{}`, in one delta."""
        events: list[Event] = []
        if status == "completed" and not self._texts:
            events.append(self.extend("{}"))
        item = self.item(status)
        events += (
            FunctionCallArgumentsDone(self._number(), self._id, self._index, item.arguments, self._name),
            OutputItemDone(self._number(), self._index, item),
        )
        return events

    def item(self, status: ItemStatus) -> OutputFunctionCall:
        """Returns the call with its arguments so far."""
        return OutputFunctionCall(self._id, status, self._call_id, self._name, "".join(self._texts))
