from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from b3node.engine.messages import Finished, Started, Token
from b3node.errors import Refusal
from b3node.workers.mailbox import Mailbox
from b3node.workers.served_model import Output

STARTED = Started(1, 0.0, 0)
FINISHED = Finished(1, "stop", 1, 0, 2)
GONE = Refusal("infer_backend_unavailable", "The engine is gone.")


def token(text: str) -> Token:
    return Token(1, text.encode())


def mailbox() -> Mailbox:
    return Mailbox(1, lambda _: None)


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 5))


class Ear:
    """Takes so many outputs, then stops listening."""

    def __init__(self, enough: int) -> None:
        self.heard: list[Output] = []
        self._enough = enough

    def __call__(self, outputs: Sequence[Output]) -> bool:
        self.heard += outputs
        return len(self.heard) < self._enough


async def listening(box: Mailbox, ear: Callable[[Sequence[Output]], bool]) -> asyncio.Task[None]:
    task = asyncio.create_task(box.listen(ear))
    await asyncio.sleep(0)
    return task


def test_what_waits_is_heard_first_then_everything_as_it_comes() -> None:
    """A listener gets each output once, in order, within the call that delivers it."""

    async def story() -> None:
        box, ear = mailbox(), Ear(4)
        box.put(STARTED)
        box.put(token("a"))
        task = await listening(box, ear)
        assert ear.heard == [STARTED, token("a")]
        box.put(token("b"))
        assert ear.heard[2:] == [token("b")]
        box.put(FINISHED)
        await task
        assert ear.heard[3:] == [FINISHED]

    run(story)


@pytest.mark.parametrize("waiting", [0, 1])
def test_what_comes_once_enough_is_heard_is_kept(waiting) -> None:
    """A listener that stops, at kept outputs or at new ones, loses nothing: the next one gets the rest."""

    async def story() -> None:
        box, ear = mailbox(), Ear(1)
        pieces = [token("a"), token("b"), token("c")]
        for piece in pieces[:waiting]:
            box.put(piece)
        task = await listening(box, ear)
        for piece in pieces[waiting:]:
            box.put(piece)
        await task
        assert ear.heard == pieces[:1]
        assert await box.take() == tuple(pieces[1:])

    run(story)


def test_what_a_listener_raises_is_raised_where_it_listens() -> None:
    """The delivery does not raise, and later outputs are kept."""

    def bad(outputs: Sequence[Output]) -> bool:
        raise ValueError(outputs)

    async def story() -> None:
        box = mailbox()
        task = await listening(box, bad)
        box.put(token("a"))
        box.put(token("b"))
        with pytest.raises(ValueError):
            await task
        assert await box.take() == (token("b"),)

    run(story)


@pytest.mark.parametrize("early", [False, True])
def test_the_end_of_the_engine_is_heard_behind_what_it_had_sent(early) -> None:
    """A listener gets the failure only after all outputs before it."""

    async def story() -> None:
        box, ear = mailbox(), Ear(9)
        if early:
            box.put(token("a"))
            box.fail(GONE)
        task = await listening(box, ear)
        if not early:
            box.put(token("a"))
            box.fail(GONE)
        if not early:
            await task  # it may return early; whoever listens again is told
            task = await listening(box, ear)
        with pytest.raises(Refusal):
            await task
        assert ear.heard == [token("a")]

    run(story)


def test_a_listener_that_is_cancelled_hears_no_more() -> None:
    """Later outputs are kept for the next reader."""

    async def story() -> None:
        box, ear = mailbox(), Ear(9)
        task = await listening(box, ear)
        task.cancel()
        await asyncio.wait([task])
        box.put(token("a"))
        assert not ear.heard
        assert await box.take() == (token("a"),)

    run(story)
