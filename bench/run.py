"""Measures b3node beside llama-server and beside the raw `llama_decode` loop, in one run on one machine.

    make bench                              everything: builds llama-server once, then some twenty minutes
    python bench/run.py --quick             small loads, one repetition, three minutes
    python bench/run.py --only shared,agent

Both servers load the same model and the same compiled llama.cpp, and are asked the same things. They are
started fresh for each repetition, one after the other, and are then there at the same time, but only one is
asked at any moment: in turn, a request, a round of all clients or a turn of a conversation each, the raw loop
between them, in alternating order. A ratio is the median of the ratios of such pairs, which lie seconds
apart, so that a machine's drifting pace does not matter; whoever waits must cost nothing, which is measured
as well.

The results go to `bench/results/NAME.json` and `.svg`. Numbers mean something on a quiet machine only; how
busy others kept it is part of them. What is asked is in `scenarios`, in which order in `rotation`, what it is
held against in `table`, how the servers are set up in `servers`.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from b3node import embedded
from bench import build, machine, picture, table
from bench.load import LoadError
from bench.repetition import RESULTS, measure
from bench.scenarios import FULL, QUICK, SCENARIOS
from bench.servers import EARLIER, ServerError, b3node, earlier, llama_server


def main() -> int:
    """The exit status: 0 unless something could not be measured; a missed bar is a result."""
    options = _options()
    # An end from outside is a Ctrl-C, even in the background of a shell: the event loop takes it at a safe
    # place, and the servers end with this process.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        model = Path(options.model) if options.model else embedded.find()
        if not (options.without_llama_server or options.against):
            build.ensure()
        result = _run(options, model)
    except (build.BuildError, embedded.EmbeddedModelError, ServerError, LoadError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    _report(result, options.name or f"{result['scale']['name']}-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    return 1 if any(repetition["failures"] for repetition in result["repetitions"]) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="small loads, one repetition; the bars are not judged")
    add("--only", type=_names, default=list(SCENARIOS), metavar="A,B", help=f"of: {', '.join(SCENARIOS)}")
    add("--repetitions", type=int, help="how often each server is started and measured [2; 1 with --quick]")
    add("--without-llama-server", action="store_true", help="b3node and the raw loop alone; builds nothing")
    add("--against", type=Path, help="a checkout of an earlier b3node, instead of llama-server; no bars")
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
    plans = [b3node(model)]
    if options.against:
        plans.append(earlier(model, options.against))
    elif not options.without_llama_server:
        plans.append(llama_server(model))
    about = machine.describe(model)
    print(machine.one_line(about))
    repetitions = []
    began = datetime.now(UTC)
    for number in range(options.repetitions or scale.repetitions):
        print(f"-- repetition {number + 1}", flush=True)
        repetitions.append(measure(plans, model, scale, options.only, number))
    return {
        "at": f"{began:%Y-%m-%d %H:%M} UTC",
        "machine": about,
        "scale": msgspec.to_builtins(scale),
        "commands": {plan.name: plan.shown for plan in plans},
        "repetitions": msgspec.to_builtins(repetitions),
        "theirs": EARLIER if options.against else table.THEIRS,
        "table": table.plain(_lines(repetitions, options)),
    }


def _lines(repetitions: list[table.Repetition], options: argparse.Namespace) -> list[table.Line]:
    """Returns the table: bars are judged at full scale against llama-server only."""
    theirs = EARLIER if options.against else table.THEIRS
    return table.lines(repetitions, judge=not (options.quick or options.against), theirs=theirs)


def _report(result: dict[str, Any], name: str) -> None:
    found = msgspec.convert(result["table"], list[table.Line])
    below = f"{machine.one_line(result['machine'])}; {result['at']}; scale {result['scale']['name']}"
    (RESULTS / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    (RESULTS / f"{name}.svg").write_text(
        picture.draw(found, title=f"b3node beside {result['theirs']}", below=below)
    )
    print(f"\n{table.text(found, result['theirs'])}\n\n{RESULTS / name}.json, .svg")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
