"""How the servers of the benchmark are told of."""

from __future__ import annotations

from pathlib import Path

from bench.servers import Plan, b3node, earlier


def test_a_result_names_no_folder_of_the_machine() -> None:
    """What is run is told by its name alone, also behind a sign of equality; options stay as they are."""
    command = ("/usr/bin/server", "--model", "name=/var/models/a b/x.gguf", "--parallel", "16", "--url=a/b")
    plan = Plan("server", command, "/health", {})
    assert plan.shown == ["server", "--model", "name=x.gguf", "--parallel", "16", "--url=a/b"]
    assert not any("/" in part for part in b3node(Path("/models/x.gguf")).shown)


def test_an_earlier_checkout_runs_its_own_code(tmp_path) -> None:
    """Its package comes before an installed one and before that of the folder at hand."""
    plan = earlier(Path("/models/x.gguf"), tmp_path)

    assert plan.environment["PYTHONPATH"] == str(tmp_path)
    assert "-P" in plan.command
