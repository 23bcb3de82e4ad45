"""Asks several parties in turn, one at any moment, and watches that those who wait cost nothing meanwhile.

A party is whoever can be asked: a server, or the raw loop. Its work is an async generator that does one piece
each time it is advanced and gives what was measured, so a conversation keeps its state between pieces.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final, Protocol

import msgspec

from bench.load import LoadError
from bench.pairs import Measures, Round, in_turn

REST: Final = 0.5
"""Seconds before each piece, in which the last one stores its prefixes and puts its threads to sleep."""


class Costs(Protocol):
    """What computes when asked."""

    @property
    def cpu(self) -> float:
        """CPU seconds that its processes have used so far."""


class Party(msgspec.Struct, frozen=True):
    """Somebody to ask, and what computes then."""

    name: str
    pieces: AsyncIterator[Measures]
    costs: Costs


class Wait(msgspec.Struct, frozen=True):
    """What the others did while one was asked: for so many seconds, with CPU seconds by name."""

    seconds: float
    cpu: dict[str, float]


class Outcome(msgspec.Struct, frozen=True):
    """What came of it. `failures` says by name why one was asked no more; what it measured before counts."""

    rounds: list[Round]
    waits: list[Wait]
    failures: dict[str, str]


async def rotate(parties: Sequence[Party], first: int) -> Outcome:
    """Runs rounds of one piece each in the order of `pairs.in_turn`, beginning with `first`."""
    outcome, left = Outcome([], [], {}), list(parties)
    while left:
        found: Round = {}
        for party in in_turn(tuple(left), first + len(outcome.rounds)):
            measures = None
            try:
                measures, wait = await _piece(party, [other for other in parties if other is not party])
            except LoadError as error:
                outcome.failures[party.name] = str(error)
            if measures is None:
                left.remove(party)
            else:
                found[party.name] = measures
                outcome.waits.append(wait)
        if found:
            outcome.rounds.append(found)
    return outcome


def idle_shares(waits: Iterable[Wait]) -> dict[str, float]:
    """By name, the share of one core that each used while somebody else was asked."""
    cpu: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for wait in waits:
        for name, spent in wait.cpu.items():
            cpu[name] = cpu.get(name, 0.0) + spent
            seconds[name] = seconds.get(name, 0.0) + wait.seconds
    return {name: spent / seconds[name] for name, spent in cpu.items() if seconds[name]}


async def _piece(party: Party, others: Sequence[Party]) -> tuple[Measures | None, Wait]:
    """One piece of a party's work, None where there is no more."""
    await asyncio.sleep(REST)
    before = {other.name: other.costs.cpu for other in others}
    began = time.perf_counter()
    measures = await anext(party.pieces, None)
    seconds = time.perf_counter() - began
    return measures, Wait(seconds, {other.name: other.costs.cpu - before[other.name] for other in others})
