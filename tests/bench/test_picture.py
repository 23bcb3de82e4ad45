from __future__ import annotations

from xml.etree import ElementTree as ET

from bench.picture import draw
from bench.table import Repetition, lines

SVG = "{http://www.w3.org/2000/svg}"


def picture(title="b3node & others"):
    ours = {"clients_1": {"tokens_s": 100.0, "gap_ms": 20.0}, "agent": {"reused": 0.99}}
    theirs = {"clients_1": {"tokens_s": 50.0, "gap_ms": 10.0}}
    found = lines([Repetition(busy=0.0, b3node=ours, llama_server=theirs, raw={})], judge=True)
    return ET.fromstring(draw(found, title=title, below="a <machine>"))


def test_what_is_better_goes_right_and_what_is_worse_left() -> None:
    """Tokens a second doubled and a gap doubled are bars of one length to different sides of the same line."""
    _, better, worse = picture().findall(f"{SVG}rect")

    middle = float(better.get("x"))
    assert float(worse.get("x")) + float(worse.get("width")) == middle
    assert float(better.get("width")) > 0
    assert better.get("fill") != worse.get("fill")


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
