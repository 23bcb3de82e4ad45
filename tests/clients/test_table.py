"""The table of clients in the README."""

from __future__ import annotations

import pytest

from tests.clients.roster import CLIENTS, FLOWS
from tests.clients.table import BEGIN, END, README, replaced, table

VERSIONS = {client.name: "1.2.3" for client in CLIENTS}
ALL = {(client.name, flow): None for client in CLIENTS for flow in client.flows}


def test_a_row_a_client_and_a_column_a_flow() -> None:
    """Every client with its version, every flow with what it means."""
    written = table(ALL, VERSIONS)

    for client in CLIENTS:
        assert f"| {client.name} | 1.2.3 | " in written
    assert " | ".join(["client", "version", *FLOWS]) in written
    assert all(meaning in written for meaning in FLOWS.values())
    assert written.count("passes") == len(ALL)


def test_only_what_was_played_passes() -> None:
    """What failed says so, with its reason below; what was not run, and what a client has not, is told
    apart.
    """
    written = table({**ALL, ("LangChain", "tools"): "KeyError: `x`\n at y"}, VERSIONS)
    assert "- LangChain, tools: `KeyError: `x` at y`" in written
    assert written.count("| fails ") == 1

    nothing = table({}, VERSIONS)
    assert "passes" not in nothing
    assert nothing.count("not run") == len(ALL)
    assert nothing.count(" n/a ") == len(CLIENTS) * len(FLOWS) - len(ALL)


def test_it_has_its_place_in_the_readme() -> None:
    """What stands around it is not touched."""
    readme = README.read_text(encoding="utf-8")
    written = replaced(readme, "| a |\n")
    assert written.count(BEGIN) == written.count(END) == 1
    assert written.split(BEGIN)[0] == readme.split(BEGIN)[0]
    assert written.split(END)[1] == readme.split(END)[1]
    assert replaced(written, "| a |\n") == written

    with pytest.raises(ValueError, match="no place"):
        replaced("nothing", "| a |\n")
