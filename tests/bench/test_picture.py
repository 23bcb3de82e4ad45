from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from bench.picture import draw
from bench.table import Repetition, lines

SVG = "{http://www.w3.org/2000/svg}"


def picture(title="b3node & others"):
    ours, theirs = {"tokens_s": 100.0, "gap_ms": 20.0}, {"tokens_s": 50.0, "gap_ms": 10.0}
    faster = {"tokens_s": 200.0, "gap_ms": 20.0}
    rounds = {
        "clients_1": [
            {"b3node": ours, "llama-server": theirs},
            {"b3node": ours, "llama-server": theirs},
            {"b3node": faster, "llama-server": theirs},
        ],
        "agent": [{"b3node": {"reused": 0.99}}],
    }
    found = lines([Repetition(busy=0.0, rounds=rounds)], judge=True)
    return ET.fromstring(draw(found, title=title, below="a <machine>"))


def test_what_is_better_goes_right_and_what_is_worse_left() -> None:
    """Tokens a second doubled and a gap doubled are bars of one length to different sides of the same
    line.
    """
    _, better, worse = picture().findall(f"{SVG}rect")

    middle = float(better.get("x"))
    assert float(worse.get("x")) + float(worse.get("width")) == middle
    assert float(better.get("width")) > 0
    assert better.get("fill") != worse.get("fill")


def test_the_quartiles_of_a_ratio_are_a_line_around_its_bars_end() -> None:
    """What spread there was is seen beside the median."""
    _, better, _ = picture().findall(f"{SVG}rect")
    spread = next(line for line in picture().findall(f"{SVG}line") if line.get("y1") == line.get("y2"))

    end = float(better.get("x")) + float(better.get("width"))
    assert float(spread.get("x1")) == pytest.approx(end, abs=0.2)
    assert float(spread.get("x2")) > end


def test_rows_without_another_server_are_left_out() -> None:
    """Only ratios have a bar."""
    assert len(picture().findall(f"{SVG}rect")) == 3  # the background and two


def test_texts_are_escaped() -> None:
    """Names of machines and models may hold anything."""
    texts = [element.text for element in picture().findall(f"{SVG}text")]

    assert {"b3node & others", "a <machine>"} <= set(texts)


def test_nothing_measured_is_still_a_picture() -> None:
    """An empty table gives an empty picture, not an error."""
    ET.fromstring(draw([], title="", below=""))
