"""Renders with the reference implementation of chat templates: a program for an environment of its own, no
test.

Each line of standard input is a job: a template's text, a moment, and the values to render it with. Each line
of standard output has a job's texts, or, where there is no text, why. Its arguments ease the implementation,
each in something that some templates were not written for:

- `lists`: templates may change lists;
- `generators`: `tojson` writes generators as lists;
- `markup`: `safe` makes plain text, not text that turns what is joined to it into HTML.
"""

from __future__ import annotations

import datetime as dt
import functools
import json
import sys
from types import SimpleNamespace
from typing import Any

from jinja2 import filters, sandbox
from transformers.utils import chat_template_utils as reference  # type: ignore[import-not-found]  # elsewhere


def ease(eased: list[str]) -> None:
    """Eases the named rules, before anything is rendered."""
    if "lists" in eased:
        allowed = sandbox.SandboxedEnvironment.is_safe_attribute
        setattr(sandbox.ImmutableSandboxedEnvironment, "is_safe_attribute", allowed)  # noqa: B010 - a method
    if "generators" in eased:
        reference.json = SimpleNamespace(dumps=functools.partial(json.dumps, default=list))
    if "markup" in eased:
        filters.FILTERS["safe"] = str


def answer(job: dict[str, Any]) -> list[dict[str, str]]:
    """The texts of a job."""
    moment = dt.datetime.fromisoformat(job["now"])
    reference.datetime = SimpleNamespace(now=lambda: moment)
    return [_rendered(job["template"], given) for given in job["given"]]


def _rendered(template: str, given: dict[str, Any]) -> dict[str, str]:
    messages = given.pop("messages")
    try:
        texts, _ = reference.render_jinja_template(
            [messages], chat_template=template, add_generation_prompt=True, **given
        )
    except Exception as error:  # noqa: BLE001 - any error is the answer
        return {"error": f"{type(error).__name__}: {error}"}
    return {"text": texts[0]}


if __name__ == "__main__":
    ease(sys.argv[1:])
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
