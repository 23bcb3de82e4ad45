"""Writes the table of clients into the README, from what a run of `test_clients` noted.

    python -m tests.clients.table RESULTS

Only flows that were played are told as passing; what a client has no words for is not applicable.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.clients.roster import CLIENTS, FLOWS, Client

README: Final = Path(__file__).parent.parent.parent / "README.md"
BEGIN: Final = "<!-- clients: written by `make test-clients` -->\n"
END: Final = "<!-- clients end -->\n"

Results = Mapping[tuple[str, str], str | None]
"""What went wrong, or None, by client and flow."""


def read(path: Path) -> Results:
    """The results of a run; the last word on each flow counts."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {(line["client"], line["flow"]): line["fault"] for line in lines}


def table(results: Results, versions: Mapping[str, str]) -> str:
    """The table in Markdown, what failed below it."""
    head = ["client", "version", *FLOWS]
    rows = [[one.name, versions[one.name], *(_cell(results, one, flow) for flow in FLOWS)] for one in CLIENTS]
    lines = [head, ["---"] * len(head), *rows]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    meanings = "; ".join(f"*{flow}*: {meaning}" for flow, meaning in FLOWS.items())
    return f"{text}\n{meanings[0].upper()}{meanings[1:]}.\n{''.join(_faults(results))}"


def replaced(readme: str, written: str) -> str:
    """`readme` with `written` between its marks. Raises ValueError where it has none."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError("the README has no place for the table")
    return f"{before}{BEGIN}{written}{END}{after}"


def _cell(results: Results, client: Client, flow: str) -> str:
    if flow not in client.flows:
        return "n/a"
    if (client.name, flow) not in results:
        return "not run"
    return "passes" if results[client.name, flow] is None else "fails"


def _faults(results: Results) -> Iterator[str]:
    for (client, flow), fault in sorted(results.items()):
        if fault is not None:
            yield f"\n- {client}, {flow}: `{' '.join(fault.split())[:200]}`\n"


def main() -> None:
    versions = {client.name: client.version for client in CLIENTS}
    written = table(read(Path(sys.argv[1])), versions)
    README.write_text(replaced(README.read_text(encoding="utf-8"), written), encoding="utf-8")


if __name__ == "__main__":
    main()
