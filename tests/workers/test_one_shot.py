from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from b3node.config import Budgets
from b3node.contract.request import Request
from b3node.workers.messages import PrepareFailed
from b3node.workers.one_shot import ask
from b3node.workers.render_prompt import RenderAnswer, RenderOrder
from b3node.workers.spawn import Child, spawn


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes of the children that are started."""
    started: list[subprocess.Popen[bytes]] = []

    def kept(module: str) -> Child:
        child = spawn(module)
        started.append(child[0])
        return child

    monkeypatch.setattr("b3node.workers.one_shot.spawn", kept)
    return started


def order(path: Path) -> RenderOrder:
    return RenderOrder(str(path), 64, Budgets(), Request(model="m", input=()), time.time())


def test_an_answer_ends_the_child(tmp_path: Path, children: list[subprocess.Popen[bytes]]) -> None:
    """It is returned as its type, and the process is gone by then."""
    path = tmp_path / "no_model.gguf"
    path.write_bytes(b"nothing")

    assert isinstance(ask(order(path), RenderAnswer), PrepareFailed)  # type: ignore[arg-type]  # a union
    assert [child.returncode for child in children] == [0]


@pytest.mark.parametrize(
    ("does", "error", "status"), [("exec sleep 60", TimeoutError, -9), ("exit 3", EOFError, 3)]
)
def test_a_child_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    children: list[subprocess.Popen[bytes]],
    does: str,
    error: type[Exception],
    status: int,
) -> None:
    """One that hangs is killed when its time is over, one that dies is told at once; both are gone then."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    begin = time.monotonic()
    with pytest.raises(error):
        ask(order(tmp_path), RenderAnswer, within=0.5)  # type: ignore[arg-type]  # a union

    assert time.monotonic() - begin < 10.0
    assert [child.returncode for child in children] == [status]
