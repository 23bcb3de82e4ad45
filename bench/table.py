"""What a run's numbers come to: medians, ratios of the same round, and whether the bars are met.

Two servers are compared round by round, because a machine's pace drifts (`pairs`); a ratio shown is the
median of those of all rounds of all repetitions, with the quartiles and the number of pairs beside it. A row
is judged by its ratio, or, where no other server is needed to judge it, by the median of b3node's own values,
of which the quartiles are then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from bench.pairs import Round, Summary, ratios, summary, values

OURS, THEIRS, RAW = "b3node", "llama-server", "raw"
"""Who is asked, as rounds name them."""


class Repetition(msgspec.Struct, frozen=True):
    """One repetition: the rounds of each scenario; `busy` is others' share of the CPU before it.

    The scenario `server` has one round: what was measured of the servers as such. `failures` says what could
    not be measured.
    """

    busy: float
    rounds: dict[str, list[Round]]
    failures: Sequence[str] = ()


class Row(msgspec.Struct, frozen=True):
    """What is looked at. `at_least` or `at_most` is the bar for `judged`: the ratio or b3node's own value."""

    scenario: str
    measure: str
    title: str
    unit: str = ""
    judged: Literal["ratio", "own"] = "ratio"
    at_least: float | None = None
    at_most: float | None = None

    @property
    def more_is_better(self) -> bool:
        """Whether a larger value is the better one, in a ratio."""
        return self.unit in {"tokens/s", "share"}

    @property
    def compares(self) -> bool:
        """Whether one server's value over the other's means anything: not so for what is a share already."""
        return self.unit not in {"", "share"}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A row with its numbers; None is what was not measured."""

    row: Row
    b3node: Summary | None
    llama_server: Summary | None
    ratio: Summary | None
    met: bool | None

    @property
    def spread(self) -> Summary | None:
        """What the quartiles and the number of pairs are of: the ratios, or else b3node's own values."""
        return self.ratio or self.b3node

    @property
    def advantage(self) -> Summary | None:
        """How many times better b3node does, whichever way is better."""
        if self.ratio is None or self.row.more_is_better:
            return self.ratio
        found = self.ratio
        return Summary(1.0 / found.median, 1.0 / found.upper, 1.0 / found.lower, found.count)


ROWS: Final = (
    Row("clients_1", "tokens_s", "1 client", "tokens/s", at_least=1.08),
    Row("clients_1", "first_s", "1 client: first token, p50", "s"),
    Row("clients_1", "gap_ms", "1 client: gap, p50", "ms"),
    Row("clients_1", "raw_share", "1 client: raw step / gap", "share", judged="own", at_least=0.93),
    Row("clients_4", "tokens_s", "4 clients", "tokens/s", at_least=1.08),
    Row("clients_4", "first_s", "4 clients: first token, p50", "s"),
    Row("clients_4", "gap_ms", "4 clients: gap, p50", "ms"),
    Row("clients_4", "raw_share", "4 clients: raw step / gap", "share"),
    Row("clients_16", "tokens_s", "16 clients", "tokens/s", at_least=1.15),
    Row("clients_16", "first_s", "16 clients: first token, p50", "s", at_most=0.5),
    Row("clients_16", "gap_ms", "16 clients: gap, p50", "ms"),
    Row("clients_16", "raw_share", "16 clients: raw step / gap", "share", judged="own", at_least=0.93),
    Row("sampled", "tokens_s", "16 clients, sampled", "tokens/s"),
    Row("sampled", "slowdown", "16 clients, sampled: gap / greedy gap", judged="own", at_most=1.03),
    Row("shared", "total_s", "shared prefix: total", "s", at_most=1 / 6),
    Row("shared", "first_s", "shared prefix: first token, p50", "s", at_most=1 / 6),
    Row("shared", "cached_share", "shared prefix: cached", "share"),
    Row("agent", "total_s", "agent: total", "s", at_most=1 / 1.5),
    Row("agent", "turn_s", "agent: a turn, p50", "s"),
    Row("agent", "first_s", "agent: first token, p50", "s"),
    Row("agent", "reused", "agent: reused of the turn before", "share", judged="own", at_least=0.95),
    Row("agents", "total_s", "agents at once: total", "s"),
    Row("agents", "turn_s", "agents at once: a turn of each, p50", "s"),
    Row("agents", "reused", "agents at once: reused of the turn before", "share"),
    Row("long", "gap_p95_ms", "beside a long prompt: gap, p95", "ms", at_most=0.5),
    Row("long", "gap_max_ms", "beside a long prompt: longest gap", "ms"),
    Row("long", "first_s", "the long prompt: first token", "s"),
    Row("neighbour", "tokens_s", "1 client, busy neighbour", "tokens/s", at_least=2.0),
    Row(
        "streaming",
        "front_us_token",
        "16 streams: CPU of the front a token",
        "us",
        judged="own",
        at_most=60.0,
    ),
    Row("streaming", "cpu_ms_token", "16 streams: CPU of all a token", "ms"),
    Row("server", "start_s", "start to the first answer", "s"),
    Row("server", "memory_mb", "memory behind all of this", "MB"),
    Row("server", "idle_share", "idle: of a core, while others are asked", "share"),
)
"""In the order of the table. The bars hold for the full scale, the embedded model and a quiet machine."""


def with_raw_share(found: Round) -> Round:
    """The round with each server's `raw_share`: the raw loop's step in it over the gap served in it."""
    step = found.get(RAW, {}).get("step_ms")
    return {
        name: measures | {"raw_share": step / measures["gap_ms"]}
        if step and measures.get("gap_ms")  # 0 where most tokens of a round came with others
        else measures
        for name, measures in found.items()
    }


def lines(repetitions: Sequence[Repetition], *, judge: bool, theirs: str = THEIRS) -> list[Line]:
    """Returns the rows of which anything was measured; with `judge`, held against their bars.

    `theirs` names the server that b3node is compared with; its values are in `Line.llama_server`.
    """
    rounds: dict[str, list[Round]] = {}
    for repetition in repetitions:
        for scenario, more in repetition.rounds.items():
            rounds.setdefault(scenario, []).extend(map(with_raw_share, more))
    found = (_line(row, rounds.get(row.scenario, []), theirs, judge=judge) for row in ROWS)
    return [line for line in found if line.b3node or line.llama_server]


def text(found: Sequence[Line], theirs: str = THEIRS) -> str:
    """Returns the table for a terminal."""
    cells: list[tuple[str, ...]] = [("", "b3node", theirs, "ratio", "(quartiles)", "pairs", "bar", "")]
    cells += [_cells(line, bars=theirs == THEIRS) for line in found]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in cells
    )


def number(value: float | None) -> str:
    """A value with three digits that matter; a dash where there is none."""
    if value is None:
        return "-"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def _line(row: Row, rounds: Sequence[Round], other: str, *, judge: bool) -> Line:
    ours, theirs = (summary(values(rounds, name, row.measure)) for name in (OURS, other))
    ratio = summary(ratios(rounds, OURS, other, row.measure)) if row.compares else None
    judged = ratio if row.judged == "ratio" else ours
    met = _met(row, judged.median) if judge and judged else None
    return Line(row=row, b3node=ours, llama_server=theirs, ratio=ratio, met=met)


def _met(row: Row, value: float) -> bool | None:
    if row.at_least is not None:
        return value >= row.at_least
    return value <= row.at_most if row.at_most is not None else None


def _cells(line: Line, *, bars: bool) -> tuple[str, ...]:
    row, spread = line.row, line.spread
    title = f"{row.title} ({row.unit})" if row.unit else row.title
    quartiles = f"({number(spread.lower)} .. {number(spread.upper)})" if spread and spread.count > 1 else ""
    count = str(spread.count) if spread else ""
    verdict = {True: "met", False: "MISSED", None: ""}[line.met]
    medians = (
        number(found.median if found else None) for found in (line.b3node, line.llama_server, line.ratio)
    )
    return (title, *medians, quartiles, count, _bar(row) if bars else "", verdict)


def _bar(row: Row) -> str:
    what = "b3node " if row.judged == "own" else ""
    if row.at_least is not None:
        return f"{what}>= {number(row.at_least)}"
    return f"{what}<= {number(row.at_most)}" if row.at_most is not None else ""


def plain(found: Sequence[Line]) -> list[dict[str, Any]]:
    """The table as builtins, for JSON."""
    return [msgspec.to_builtins(line) | {"advantage": msgspec.to_builtins(line.advantage)} for line in found]
