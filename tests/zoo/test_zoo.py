"""The cache of models that tests share."""

from __future__ import annotations

from pathlib import Path

from tests.zoo.script import S
from tests.zoo.zoo import Zoo


def test_the_same_model_is_written_once(tmp_path: Path) -> None:
    """The same question gives the same file, untouched; the order of options does not matter."""
    zoo = Zoo(tmp_path / "models")
    first = zoo.scripted([b"a", S("</think>")], n_layer=2, strict=True)
    written = first.stat().st_mtime_ns
    assert zoo.scripted([b"a", S("</think>")], strict=True, n_layer=2) == first
    assert first.stat().st_mtime_ns == written
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_different_models_have_different_files(tmp_path: Path) -> None:
    """Whatever changes the model changes the path."""
    zoo = Zoo(tmp_path)
    paths = [
        zoo.scripted([b"ab"]),
        zoo.scripted([b"a", b"b"]),
        zoo.scripted([b"ab"], end=0),
        zoo.scripted([b"ab"], arch="qwen35"),
        zoo.random(),
        zoo.random(seed=1),
        zoo.random("qwen3"),
        zoo.free_choice(),
        zoo.free_choice({"{": 8}),
        zoo.free_choice(strict=True),
    ]
    assert len({path.read_bytes() for path in paths}) == len(set(paths)) == len(paths)
