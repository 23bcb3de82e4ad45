from __future__ import annotations

import asyncio

import msgspec
import pytest

from b3node.workers import supervisor
from b3node.workers.backoff import Backoff
from b3node.workers.supervisor import Supervisor
from tests.nodes import is_alive
from tests.workers.children import BABBLES, CLINGS, ENDS, STAYS, instead


class Word(msgspec.Struct, frozen=True):
    """The only message of these children."""

    text: str


class Watched:
    """A supervisor with the ends of its child."""

    def __init__(self, backoff: Backoff, load_within: float | None = None) -> None:
        self.ends: asyncio.Queue[bool] = asyncio.Queue()
        self.child: Supervisor[Word] = Supervisor(
            "stand-in",
            "a.module",
            Word,
            Word("order"),
            on_message=lambda _word: None,
            on_exit=self.ends.put_nowait,
            backoff=backoff,
            load_within=load_within,
        )

    async def end(self) -> bool:
        """Whether there is to be a next start, once the child has ended."""
        async with asyncio.timeout(60):
            return await self.ends.get()


def at_once(most: int | None = None) -> Backoff:
    return Backoff(first=0.0, most=most)


def test_a_child_that_ends_is_started_again_until_it_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each end is reported, with whether there will be another start; after the last one there is none."""
    pids = instead(monkeypatch, ENDS)

    async def main() -> list[bool]:
        watched = Watched(at_once(most=3))
        watched.child.start()
        return [await watched.end() for _ in range(3)]

    assert asyncio.run(main()) == [True, True, False]
    assert len(pids) == 3


def test_a_child_that_says_it_cannot_serve_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying again is for accidents."""
    pids = instead(monkeypatch, ENDS)

    async def main() -> bool:
        watched = Watched(at_once())
        watched.child.give_up()
        watched.child.start()
        return await watched.end()

    assert asyncio.run(main()) is False
    assert len(pids) == 1


def test_a_child_that_is_never_ready_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading is bounded where a bound is given, and a child that hangs counts as crashed."""
    pids = instead(monkeypatch, CLINGS)

    async def main() -> bool:
        watched = Watched(at_once(most=1), load_within=0.1)
        watched.child.start()
        return await watched.end()

    assert asyncio.run(main()) is False
    assert not is_alive(pids[0])


def test_a_child_that_was_ready_in_time_lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is for loading alone."""
    instead(monkeypatch, STAYS)

    async def main() -> bool:
        watched = Watched(at_once(), load_within=0.05)
        watched.child.start()
        await asyncio.sleep(0)
        watched.child.ready()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await watched.end()
        alive = watched.child.pid is not None
        await watched.child.stop()
        return alive

    assert asyncio.run(main())


def test_a_child_that_sends_nonsense_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are no message close the channel, and the child ends with it."""
    monkeypatch.setattr(supervisor, "GRACE_SECONDS", 0.1)
    pids = instead(monkeypatch, BABBLES)

    async def main() -> bool:
        watched = Watched(at_once(most=1))
        watched.child.start()
        return await watched.end()

    assert asyncio.run(main()) is False
    assert not is_alive(pids[0])


@pytest.mark.parametrize("script", [STAYS, CLINGS])
def test_a_stopped_child_is_gone(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Stopping ends every child, also one that ignores the end of its socket; nothing is started
    again.
    """
    monkeypatch.setattr(supervisor, "GRACE_SECONDS", 0.1)
    pids = instead(monkeypatch, script)

    async def main() -> None:
        watched = Watched(at_once())
        watched.child.start()
        await asyncio.sleep(0)
        await watched.child.stop()
        await watched.child.stop()

    asyncio.run(main())
    assert len(pids) == 1
    assert not is_alive(pids[0])


def test_stopping_does_not_wait_for_the_next_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that is down, and would be started in an hour, is stopped now: there is nothing to be patient
    with.
    """
    monkeypatch.setattr(supervisor, "GRACE_SECONDS", 3600.0)
    instead(monkeypatch, ENDS)

    async def main() -> None:
        watched = Watched(Backoff(first=3600.0, longest=3600.0))
        watched.child.start()
        await watched.end()
        async with asyncio.timeout(60):
            await watched.child.stop()

    asyncio.run(main())


def test_a_machine_without_room_for_a_process_may_have_it_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that fails counts like a crash: it is tried again."""
    pids = instead(monkeypatch, ENDS, failures=1)

    async def main() -> list[bool]:
        watched = Watched(at_once(most=2))
        watched.child.start()
        return [await watched.end() for _ in range(2)]

    assert asyncio.run(main()) == [True, False]
    assert len(pids) == 1
