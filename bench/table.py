"""What a run's numbers come to: medians, ratios of the same repetition, and whether the bars are met.

Two servers are compared within a repetition, because a machine's pace drifts; a ratio shown is the median of
those, with the smallest and the largest beside it. A row is judged by its ratio, or, where no other server
is needed to judge it, by b3node's own value.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, Final, Literal

import msgspec

Values = dict[str, dict[str, float]]
"""Scenario to measure to value."""


class Repetition(msgspec.Struct, frozen=True):
    """One repetition: what each server measured, and what the raw loop did; `busy` is others' share of the CPU."""

    busy: float
    b3node: Values
    llama_server: Values
    raw: Values


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
        """Whether a larger value is the better one."""
        return self.unit in {"tokens/s", "share"}

    @property
    def compares(self) -> bool:
        """Whether one server's value over the other's means anything: not so for what is a share already."""
        return self.unit not in {"", "share"}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A row with its numbers; None is what was not measured."""

    row: Row
    b3node: float | None
    llama_server: float | None
    ratio: float | None
    lowest: float | None
    highest: float | None
    met: bool | None

    @property
    def advantage(self) -> float | None:
        """How many times better b3node does, whichever way is better."""
        return self.ratio if self.ratio is None or self.row.more_is_better else 1.0 / self.ratio


ROWS: Final = (
    Row("clients_1", "tokens_s", "1 client", "tokens/s", at_least=1.08),
    Row("clients_1", "first_s", "1 client: first token, p50", "s"),
    Row("clients_1", "gap_ms", "1 client: gap, p50", "ms"),
    Row("clients_1", "raw_share", "1 client: raw step / gap", "share", judged="own", at_least=0.93),
    Row("clients_4", "tokens_s", "4 clients", "tokens/s", at_least=1.08),
    Row("clients_4", "first_s", "4 clients: first token, p50", "s"),
    Row("clients_4", "gap_ms", "4 clients: gap, p50", "ms"),
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
    Row("agent", "first_s", "agent: first token, p50", "s"),
    Row("agent", "reused", "agent: reused of the turn before", "share", judged="own", at_least=0.95),
    Row("agents", "total_s", "agents at once: total", "s"),
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
)
"""In the order of the table. The bars hold for the full scale, the embedded model and a quiet machine."""


def derive(repetition: Repetition) -> Repetition:
    """The repetition with `raw_share`, the raw loop's step over the served gap, where both were measured."""
    return msgspec.structs.replace(
        repetition,
        b3node=_with_raw_share(repetition.b3node, repetition.raw),
        llama_server=_with_raw_share(repetition.llama_server, repetition.raw),
    )


def lines(repetitions: Sequence[Repetition], *, judge: bool) -> list[Line]:
    """The rows of which anything was measured; with `judge`, held against their bars."""
    found = (_line(row, [derive(repetition) for repetition in repetitions], judge=judge) for row in ROWS)
    return [line for line in found if line.b3node is not None or line.llama_server is not None]


def text(found: Sequence[Line]) -> str:
    """The table for a terminal."""
    cells: list[tuple[str, ...]] = [("", "b3node", "llama-server", "ratio", "(range)", "bar", "")]
    cells += [_cells(line) for line in found]
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


def _with_raw_share(values: Values, raw: Values) -> Values:
    shares = {
        scenario: {**measured, "raw_share": raw[scenario]["step_ms"] / measured["gap_ms"]}
        for scenario, measured in values.items()
        if scenario in raw and measured
    }
    return {**values, **shares}


def _line(row: Row, repetitions: Sequence[Repetition], *, judge: bool) -> Line:
    ours = [_value(repetition.b3node, row) for repetition in repetitions]
    theirs = [_value(repetition.llama_server, row) for repetition in repetitions]
    pairs = zip(ours, theirs, strict=True) if row.compares else ()
    ratios = [a / b for a, b in pairs if a is not None and b]
    ratio, own = _median(ratios), _median(ours)
    judged = ratio if row.judged == "ratio" else own
    return Line(
        row=row,
        b3node=own,
        llama_server=_median(theirs),
        ratio=ratio,
        lowest=min(ratios, default=None),
        highest=max(ratios, default=None),
        met=_met(row, judged) if judge and judged is not None else None,
    )


def _value(values: Values, row: Row) -> float | None:
    return values.get(row.scenario, {}).get(row.measure)


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _met(row: Row, value: float) -> bool | None:
    if row.at_least is not None:
        return value >= row.at_least
    return value <= row.at_most if row.at_most is not None else None


def _cells(line: Line) -> tuple[str, ...]:
    row = line.row
    title = f"{row.title} ({row.unit})" if row.unit else row.title
    several = line.lowest is not None and line.lowest != line.highest
    spread = f"({number(line.lowest)} .. {number(line.highest)})" if several else ""
    verdict = {True: "met", False: "MISSED", None: ""}[line.met]
    return (
        title,
        number(line.b3node),
        number(line.llama_server),
        number(line.ratio),
        spread,
        _bar(row),
        verdict,
    )


def _bar(row: Row) -> str:
    what = "b3node " if row.judged == "own" else ""
    if row.at_least is not None:
        return f"{what}>= {number(row.at_least)}"
    return f"{what}<= {number(row.at_most)}" if row.at_most is not None else ""


def plain(found: Sequence[Line]) -> list[dict[str, Any]]:
    """The table as builtins, for JSON."""
    return [{**msgspec.to_builtins(line), "advantage": line.advantage} for line in found]
