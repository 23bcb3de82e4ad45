"""Measures b3node beside llama-server and beside the raw `llama_decode` loop, in one run on one machine.

    make bench                              everything: builds llama-server once, then about ten minutes
    python bench/run.py --quick             small loads, one repetition, two or three minutes
    python bench/run.py --only shared,agent

Both servers load the same model and the same compiled llama.cpp, and are asked the same things, never at
once: b3node, llama-server, raw loop, b3node, ... Each is started fresh for each repetition and warmed up.
The results go to `bench/results/NAME.json` and `.svg`. Numbers mean something on a quiet machine only; how
busy others kept it is part of them. What is asked is in `scenarios`, what it is held against in `table`, how
the servers are set up in `servers`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop

from b3node import embedded
from b3node.llama.settings import usable_cores
from bench import build, machine, picture, raw, table
from bench.load import LoadError
from bench.processes import busy_share
from bench.scenarios import FULL, QUICK, SCENARIOS, Measures, Scale, warm_up
from bench.servers import Plan, Running, ServerError, b3node, llama_server, serve
from bench.table import Repetition, Values

RESULTS: Final = Path(__file__).resolve().parent / "results"
QUIET: Final = 0.05
"""Share of the CPU above which others make the numbers worthless."""
RAW: Final = {"clients_1": 1, "clients_4": 4, "clients_16": 16}
"""Scenarios that the raw loop is the limit of, with its batch size."""
SPINS: Final = "1000"
"""What b3node sets GOMP_SPINCOUNT to: the raw loop is measured with it too, to tell its cost from b3node's."""


def main() -> int:
    """The exit status: 0 unless something could not be measured; a missed bar is a result."""
    options = _options()
    # An end from outside is a Ctrl-C, even in the background of a shell: the event loop takes it at a safe
    # place, and the servers end with this process.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        model = Path(options.model) if options.model else embedded.find()
        if not options.without_llama_server:
            build.ensure()
        result = _run(options, model)
    except (build.BuildError, embedded.EmbeddedModelError, ServerError, LoadError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    _report(result, options.name or f"{result['scale']['name']}-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    return 1 if _failures(result) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="small loads, one repetition; the bars are not judged")
    add("--only", type=_names, default=list(SCENARIOS), metavar="A,B", help=f"of: {', '.join(SCENARIOS)}")
    add("--repetitions", type=int, help="how often each server is measured [3; 1 with --quick]")
    add("--without-llama-server", action="store_true", help="b3node and the raw loop alone; builds nothing")
    add("--model", help="a GGUF file [the embedded model]")
    add("--name", help="name of the files in bench/results [scale and time]")
    return parser.parse_args()


def _names(given: str) -> list[str]:
    names = given.split(",")
    if unknown := [name for name in names if name not in SCENARIOS]:
        raise argparse.ArgumentTypeError(
            f"there is no scenario {unknown[0]}; there are {', '.join(SCENARIOS)}"
        )
    return [name for name in SCENARIOS if name in names]


def _run(options: argparse.Namespace, model: Path) -> dict[str, Any]:
    """All repetitions, as builtins."""
    scale = QUICK if options.quick else FULL
    plans = [b3node(model)] if options.without_llama_server else [b3node(model), llama_server(model)]
    about = machine.describe(model)
    print(machine.one_line(about))
    repetitions = []
    began = datetime.now(UTC)
    for number in range(options.repetitions or scale.repetitions):
        print(f"-- repetition {number + 1}", flush=True)
        repetitions.append(_repetition(plans, model, scale, options.only, number))
    return {
        "at": f"{began:%Y-%m-%d %H:%M} UTC",
        "machine": about,
        "scale": msgspec.to_builtins(scale, str_keys=True),
        "commands": {plan.name: list(plan.command) for plan in plans},
        "repetitions": msgspec.to_builtins(repetitions),
        "table": table.plain(table.lines(repetitions, judge=scale is FULL)),
    }


def _repetition(plans: Sequence[Plan], model: Path, scale: Scale, only: list[str], number: int) -> Repetition:
    """Every server once, then the raw loop for the same prompts."""
    busy = busy_share()
    if busy > QUIET:
        print(f"   others use {busy:.0%} of this machine: these numbers will not mean much", flush=True)
    values = {plan.name: _measured(plan, scale, only, f"{time.time_ns()}/{number}") for plan in plans}
    ours = values["b3node"]
    limits: Values = {
        scenario: _raw(model, clients, int(ours[scenario]["input_tokens"]), scale.output)
        for scenario, clients in RAW.items()
        if ours.get(scenario)
    }
    return Repetition(busy=busy, b3node=ours, llama_server=values.get("llama-server", {}), raw=limits)


def _measured(plan: Plan, scale: Scale, only: list[str], seed: str) -> Values:
    """Starts a server, asks it everything, and ends it."""
    RESULTS.mkdir(exist_ok=True)
    with (
        serve(plan, RESULTS / f"{plan.name}.log") as server,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        if not server.own_libraries:
            print(f"   {plan.name} does not run on the package's libraries: flags may differ", flush=True)
        first = runner.run(warm_up(server))
        values = {name: _scenario(runner, server, scale, name, f"{seed}/{name}") for name in only}
        memory = server.memory_mb
        own = float(server.own_libraries)
        values["server"] = {"start_s": server.start_s + first, "memory_mb": memory, "own_libraries": own}
        return values


def _scenario(runner: asyncio.Runner, server: Running, scale: Scale, name: str, seed: str) -> Measures:
    """One scenario's measures; none where an answer failed, which is told but ends nothing else."""
    try:
        measures = runner.run(SCENARIOS[name](server, scale, seed))
    except LoadError as error:
        print(f"   {server.name:<12} {name:<10} FAILED: {error}", flush=True)
        return {}
    shown = "  ".join(f"{key} {table.number(value)}" for key, value in measures.items())
    print(f"   {server.name:<12} {name:<10} {shown}", flush=True)
    return measures


def _raw(model: Path, clients: int, prompt: int, output: int) -> dict[str, float]:
    ask = partial(raw.measure, model, clients=clients, prompt=prompt, output=output, threads=usable_cores())
    bare, spun = ask(), ask(settings={"GOMP_SPINCOUNT": SPINS})
    print(
        f"   raw loop of {clients}: step {bare['step_ms']:.2f} ms ({spun['step_ms']:.2f} with a short spin)",
        flush=True,
    )
    return bare | {"step_ms_short_spin": spun["step_ms"]}


def _failures(result: dict[str, Any]) -> list[str]:
    """Scenarios that were asked of a server and measured nothing."""
    return [
        f"{server} {scenario}"
        for repetition in result["repetitions"]
        for server in ("b3node", "llama_server")
        for scenario, measures in repetition[server].items()
        if not measures
    ]


def _report(result: dict[str, Any], name: str) -> None:
    found = msgspec.convert(result["table"], list[table.Line])
    below = f"{machine.one_line(result['machine'])}; {result['at']}; scale {result['scale']['name']}"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    (RESULTS / f"{name}.svg").write_text(picture.draw(found, title="b3node beside llama-server", below=below))
    print(f"\n{table.text(found)}\n\n{RESULTS / name}.json, .svg")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
