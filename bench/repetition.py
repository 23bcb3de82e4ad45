"""One repetition: every server started fresh, all asked in turn, and ended.

They start one after the other, each while the ones before it wait, so that no start is disturbed; from then
on all are there and one is asked at any moment (`rotation`). Whoever waits must cost nothing, which is
measured.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from b3node.llama.settings import usable_cores
from bench import raw, table
from bench.pairs import Round, in_turn, middles
from bench.processes import busy_share
from bench.rotation import Outcome, Party, Wait, idle_shares, rotate
from bench.scenarios import PROMPT, SCENARIOS, Scale, warm_up
from bench.servers import Plan, Running, serve

RESULTS: Final = Path(__file__).resolve().parent / "results"
QUIET: Final = 0.05
"""Share of the CPU above which others make the numbers worthless."""
IDLE: Final = 0.02
"""Share of a core above which one that waits disturbs the one that is asked."""


class Bench(msgspec.Struct, frozen=True):
    """Who is there to be asked in a repetition. `raw` is None where no scenario is held against it."""

    runner: asyncio.Runner
    servers: tuple[Running, ...]
    raw: raw.Child | None
    scale: Scale


def measure(
    plans: Sequence[Plan], model: Path, scale: Scale, only: Sequence[str], number: int
) -> table.Repetition:
    """Repetition `number` of the scenarios `only`; even and odd ones begin with different servers.

    An answer that fails ends its scenario for that server and nothing else, and is told in `failures`. Raises
    `ServerError` or `LoadError` where one does not even start.
    """
    busy = busy_share()
    if busy > QUIET:
        print(f"   others use {busy:.0%} of this machine: these numbers will not mean much", flush=True)
    RESULTS.mkdir(exist_ok=True)
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner(loop_factory=uvloop.new_event_loop))
        started = [_started(stack, runner, plan) for plan in in_turn(plans, number)]
        wanted = any(SCENARIOS[name].raw for name in only)
        child = stack.enter_context(raw.child(model, threads=usable_cores())) if wanted else None
        bench = Bench(runner, tuple(in_turn(started, number)), child, scale)
        outcomes = {name: _outcome(bench, name, number) for name in only}
        rounds = {name: outcome.rounds for name, outcome in outcomes.items()}
        waits = [wait for outcome in outcomes.values() for wait in outcome.waits]
        rounds["server"] = [_as_such(bench.servers, waits)]
    failures = [
        f"{name} {scenario}: {why}"
        for scenario, outcome in outcomes.items()
        for name, why in outcome.failures.items()
    ]
    return table.Repetition(busy, rounds, failures)


def _started(stack: ExitStack, runner: asyncio.Runner, plan: Plan) -> Running:
    """A server that is warm; its `start_s` ends with its first answer."""
    server = stack.enter_context(serve(plan, RESULTS / f"{plan.name}.log"))
    if not server.own_libraries:
        print(f"   {plan.name} does not run on the package's libraries: flags may differ", flush=True)
    first = runner.run(warm_up(server))
    return msgspec.structs.replace(server, start_s=server.start_s + first)


def _outcome(bench: Bench, name: str, number: int) -> Outcome:
    """One scenario, asked of all in turn, and told."""
    with SCENARIOS[name].beside():
        outcome = bench.runner.run(rotate(_parties(bench, name, f"{time.time_ns()}/{name}"), number))
    for party, why in outcome.failures.items():
        print(f"   {party:<12} {name:<10} FAILED: {why}", flush=True)
    for party in outcome.rounds[0] if outcome.rounds else ():
        found = middles(outcome.rounds, party).items()
        shown = "  ".join(f"{measure} {table.number(value)}" for measure, value in found)
        print(f"   {party:<12} {name:<10} {shown}", flush=True)
    for party, share in idle_shares(outcome.waits).items():
        if share > IDLE:
            print(
                f"   {party} took {share:.1%} of a core while others were asked: not undisturbed", flush=True
            )
    return outcome


def _parties(bench: Bench, name: str, seed: str) -> list[Party]:
    """Who is asked in a scenario: the raw loop between the servers, next to both."""
    scenario, scale, rounds = SCENARIOS[name], bench.scale, bench.scale.rounds[name]
    parties = [
        Party(server.name, scenario.pieces(server, scale, seed, rounds), server) for server in bench.servers
    ]
    if bench.raw is not None:
        series = rounds if scenario.raw else 0
        pieces = bench.raw.pieces(clients=scenario.raw, prompt=PROMPT, output=scale.output, rounds=series)
        parties.insert(1, Party(table.RAW, pieces, bench.raw))
    return parties


def _as_such(servers: Sequence[Running], waits: Sequence[Wait]) -> Round:
    """What is measured of the servers themselves, after everything."""
    idle = idle_shares(waits)
    return {
        server.name: {
            "start_s": server.start_s,
            "memory_mb": server.memory_mb,
            "own_libraries": float(server.own_libraries),
        }
        | ({"idle_share": idle[server.name]} if server.name in idle else {})
        for server in servers
    }
