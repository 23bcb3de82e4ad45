"""Refusal of the things that the node does not do: found all at once, and listed in one message.

A client that learns of one entry per try gives up before the last. So `survey` walks the whole request first,
in the order in which it was written, and lists every entry. It runs before the typed readers, so a request
with both faults is always `unsupported_parameter`. Which values are refused is in the table of `parameters`;
a name that is not in the table is refused too.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from b3node.contract.image import images
from b3node.contract.parameters import BY_NAME
from b3node.contract.path import member
from b3node.contract.request import Request
from b3node.contract.unsupported import RefusedEntry
from b3node.errors import MAX_MESSAGE_CHARS, Refusal

MAX_LIST_CHARS: Final = 180
"""Characters of the list of entries, so that the advice for the first of them still fits."""

_COUNT_CHARS: Final = 20
"""Characters of a separator and the number of kinds left out."""

_MAX_PATHS_PER_KIND: Final = (32, 8, 4, 2, 1)
"""Places of one kind that are named: the most that keeps the list short enough."""

_MAX_KINDS: Final = MAX_LIST_CHARS // len("x; ") + 1
"""Kinds that are looked at: so many never fit, however short they are."""

_CHAT_NAMES: Final = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
}
"""Parameters of Chat Completions that this API has under another name."""


def survey(request: dict[str, object]) -> list[RefusedEntry]:
    """Returns every refused entry of a decoded request, in the order in which the client wrote them."""
    entries: list[RefusedEntry] = []
    for name, value in request.items():
        if name not in BY_NAME:
            entries.append(_unknown(name))
        elif value is not None:
            entries.extend(BY_NAME[name].find_refused(value, name))
    return entries


def refuse_images(request: Request) -> None:
    """Raises one `unsupported_parameter` that names every image of a request: no model here reads images."""
    entries = [RefusedEntry(path, "images") for path, _ in images(request.input)]
    if entries:
        raise refusal_of(entries, lead="This node does not serve this yet:")


def _unknown(name: str) -> RefusedEntry:
    path = member("", name)
    own = _CHAT_NAMES.get(name)
    return RefusedEntry(path, path, f"Use {own} for {name}." if own else "")


def refusal_of(entries: list[RefusedEntry], lead: str = "Not supported on this node:") -> Refusal:
    """Returns one `unsupported_parameter` for all `entries`, at least one; `param` is the first path."""
    text = f"{lead} {_listed(entries)}."
    for advice in dict.fromkeys(entry.advice for entry in entries if entry.advice):
        if len(text) + 1 + len(advice) <= MAX_MESSAGE_CHARS:
            text = f"{text} {advice}"
    return Refusal("unsupported_parameter", text, param=entries[0].path)


def _listed(entries: list[RefusedEntry]) -> str:
    places: dict[str, list[str]] = {}
    for entry in entries:
        places.setdefault(entry.label, []).append(entry.path)
    first = list(islice(places.items(), _MAX_KINDS))
    for most in _MAX_PATHS_PER_KIND:
        kinds = [_kind(label, paths, most) for label, paths in first]
        text = "; ".join(kinds)
        if len(text) <= MAX_LIST_CHARS:
            return text
    return _cut(kinds, len(places))


def _kind(label: str, paths: list[str], most: int) -> str:
    """Returns one kind of entry with its places; without them if its name has the place already."""
    places = [path.removesuffix(".type") for path in paths[:most]]
    if label.startswith(places[0]):
        return label
    rest = f" and {len(paths) - most} more" if len(paths) > most else ""
    return f"{label} ({', '.join(places)}{rest})"


def _cut(kinds: list[str], total: int) -> str:
    """Returns as many of `kinds` as fit, and the number of the others of all `total`."""
    text = kinds[0]
    for position, kind in enumerate(kinds[1:], start=1):
        if len(text) + len(kind) > MAX_LIST_CHARS - _COUNT_CHARS:
            return f"{text}; and {total - position} more"
        text = f"{text}; {kind}"
    return text
