"""The chat templates of many model families, where the shared folder is there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from b3node.contract.decode import decode_request
from b3node.contract.image import images
from b3node.contract.request import Request
from b3node.prompt.probe.capabilities import probe
from b3node.prompt.probe.dialect import Learned, learn
from b3node.prompt.template.capabilities import TemplateCapabilities
from b3node.prompt.template.chat_template import ChatTemplate
from tests.zoo.templates import CHATML, TOOLS

FOLDER = Path(__file__).parents[3] / "shared" / "corpora" / "templates"
OWN = {"zoo-chatml": CHATML, "zoo-tools": TOOLS}
_THEIRS = sorted(path.stem for path in FOLDER.glob("*.jinja"))
_MARKER = re.compile(r"<[^\s<>'{}]{1,40}>|\[/?[A-Z_]{3,20}\]|<[|\uff5c][^\s<>'{}]{1,40}[|\uff5c]>")

_MISSING = pytest.param("", marks=pytest.mark.skip(reason="the shared templates are not here"))

_NAMES: list[object] = [*_THEIRS]
ALL = [*OWN, *(_NAMES or [_MISSING])]
"""Names of templates, for `parametrize`."""


@cache
def source(name: str) -> str:
    """A template's text."""
    return OWN.get(name) or (FOLDER / f"{name}.jinja").read_text("utf-8")


@cache
def compiled(name: str) -> tuple[ChatTemplate, TemplateCapabilities]:
    """Returns a template, compiled, and its capabilities."""
    template = ChatTemplate(source(name), bos="<s>", eos="</s>")
    return template, probe(template)


@cache
def learned(name: str) -> Learned:
    """Returns the findings about a template's model."""
    return learn(*compiled(name))


def assert_as_reviewed(golden: Path, describe: Callable[[str], str]) -> None:
    """Asserts that what is said of each template is what a person last read; `B3NODE_GOLDEN=write` writes it
    anew. Skips without the shared templates, of which the golden file tells.
    """
    if len(ALL) < 10:
        pytest.skip("the shared templates are not here")
    table = "\n\n".join(describe(str(name)) for name in ALL) + "\n"
    if os.environ.get("B3NODE_GOLDEN") == "write":
        golden.write_text(table, "utf-8")
    assert table == golden.read_text("utf-8")


def markers_in(name: str) -> tuple[str, ...]:
    """Returns the parts of a template that look like special tokens; most are, in its model."""
    return tuple(sorted({*_MARKER.findall(source(name)), "<s>", "</s>", "<tool_call>", "<tool_response>"}))


@cache
def sent_by_clients() -> tuple[Request, ...]:
    """What real clients sent and the node takes, but for images; nothing if the shared folder is not
    there.
    """
    path = FOLDER.parent / "client_requests.jsonl"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    bodies = (entry["body"] for entry in map(json.loads, lines) if entry["accepted"])
    requests = (decode_request(json.dumps(body).encode()) for body in bodies)
    return tuple(request for request in requests if not any(images(request.input)))
