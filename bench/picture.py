"""The table as a picture: one bar a ratio, on a logarithmic scale, to the right where b3node does better.

A thin line at a bar's end spans the quartiles of the pairs that the ratio is the median of.

An SVG written by hand: it needs no library, shows in every browser and on every page, and diffs as text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final

from bench.pairs import Summary
from bench.table import Line, number

_LABELS, _PLOT, _VALUES = 300, 420, 240
_LINE, _TOP, _BOTTOM = 22, 78, 44
_BETTER, _WORSE, _INK, _FAINT = "#2a7f62", "#b5523b", "#222222", "#d8d8d8"
_STYLE: Final = f'font-family="sans-serif" font-size="12" fill="{_INK}"'
_TICKS: Final = (1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


def draw(found: Sequence[Line], *, title: str, below: str) -> str:
    """An SVG document of all lines that have a ratio."""
    shown = [(line, line.advantage) for line in found if line.advantage is not None]
    scale = _Scale([end for _, found in shown for end in (found.lower, found.upper)])
    height = _TOP + _LINE * len(shown) + _BOTTOM
    width = _LABELS + _PLOT + _VALUES
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {_STYLE}>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(12, 24, title, size=16),
        _text(
            12,
            44,
            "How many times better b3node does: medians of pairs asked in turn; thin line: quartiles; black mark: the bar.",
        ),
        *_axis(scale, height),
        *(part for i, (line, value) in enumerate(shown) for part in _row(scale, i, line, value)),
        _text(12, height - 12, below, size=10),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class _Scale:
    """Where a ratio lies: logarithmic, from the smallest to the largest value, 1 included."""

    def __init__(self, values: Sequence[float]) -> None:
        self.low = min(0.8, *values) if values else 0.5
        self.high = max(1.25, *values) * 1.1 if values else 2.0

    def __call__(self, value: float) -> float:
        place = math.log(value / self.low) / math.log(self.high / self.low)
        return round(_LABELS + _PLOT * min(max(place, 0.0), 1.0), 1)


def _axis(scale: _Scale, height: int) -> list[str]:
    parts = []
    for tick in _TICKS:
        if scale.low <= tick <= scale.high:
            x = scale(tick)
            stroke = _INK if tick == 1.0 else _FAINT
            parts += [
                f'<line x1="{x}" y1="{_TOP - 6}" x2="{x}" y2="{height - _BOTTOM + 4}" stroke="{stroke}"/>',
                _text(x, _TOP - 12, f"{tick:g}x", anchor="middle"),
            ]
    return parts


def _row(scale: _Scale, index: int, line: Line, found: Summary) -> list[str]:
    y = _TOP + _LINE * index
    left, right = sorted((scale(1.0), scale(found.median)))
    lower, upper, middle = scale(found.lower), scale(found.upper), y + _LINE // 2 - 1
    colour = _BETTER if found.median >= 1.0 else _WORSE
    parts = [
        _text(_LABELS - 10, y + 14, line.row.title, anchor="end"),
        f'<rect x="{left}" y="{y + 3}" width="{round(right - left, 1)}" height="{_LINE - 8}" fill="{colour}"/>',
        f'<line x1="{lower}" y1="{middle}" x2="{upper}" y2="{middle}" stroke="{_INK}"/>',
        _text(_LABELS + _PLOT + 10, y + 14, _values(line, found)),
    ]
    bar = _bar(line)
    if bar is not None and scale.low <= bar <= scale.high:
        x = scale(bar)
        parts.append(
            f'<line x1="{x}" y1="{y}" x2="{x}" y2="{y + _LINE - 2}" stroke="black" stroke-width="2"/>'
        )
    return parts


def _bar(line: Line) -> float | None:
    """The bar as an advantage; None where the row is not judged by its ratio."""
    if line.row.judged != "ratio":
        return None
    if line.row.at_least is not None:
        return line.row.at_least
    return 1.0 / line.row.at_most if line.row.at_most is not None else None


def _values(line: Line, found: Summary) -> str:
    unit = f" {line.row.unit}" if line.row.unit else ""
    ours, theirs = (number(values.median if values else None) for values in (line.b3node, line.llama_server))
    return f"{number(found.median)}x of {found.count} ({ours} : {theirs}{unit})"


def _text(x: float, y: float, content: str, *, size: int = 12, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}">{escape(content)}</text>'
