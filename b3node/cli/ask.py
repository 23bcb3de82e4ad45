"""`b3node ask`: streams one answer from a running node to the terminal.

It speaks plain HTTP through the standard library, on purpose: it shows that nothing else is needed.
"""

from __future__ import annotations

import http.client
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

import click

DEFAULT_URL: Final = "http://127.0.0.1:8080"
_SILENCE_SECONDS: Final = 300.0
"""Seconds without a byte after which the command gives up."""
_NO_ANSWER: Final = (OSError, http.client.HTTPException)
"""Faults of a connection: refused, reset, timed out, cut short (`URLError` is an OSError)."""
_CONTROLS: Final = dict.fromkeys(
    {*range(0x20), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")}, "\N{REPLACEMENT CHARACTER}"
)
"""Replacements for the control characters, which a terminal would obey."""
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@click.command()
@click.argument("question")
@click.option("--url", default=DEFAULT_URL, show_default=True, help="Where the node listens.")
@click.option("--model", help="Which of its models; the first one, when not said.")
@click.option("--instructions", help="The system prompt.")
@click.option("--max-output-tokens", type=click.IntRange(min=1), help="Where to cut the answer.")
@click.option(
    "--temperature",
    type=click.FloatRange(0, 2),
    default=0.7,
    show_default=True,
    help="How freely words are chosen; 0 always takes the most probable.",
)
def ask(question: str, url: str, model: str | None, **parameters: object) -> None:
    """Stream an answer to QUESTION from a running node."""
    stream(_root(url), question, model=model, **parameters)


def stream(url: str, question: str, *, model: str | None = None, **parameters: object) -> dict[str, Any]:
    """Prints the answer as it arrives, then the usage; returns the final response.

    Raises `click.ClickException` with the node's own message if it refuses or fails, and with ours if there
    is no node or it goes away.
    """
    body = {"model": model or first_model(url), "input": question, "stream": True}
    body |= {name: value for name, value in parameters.items() if value is not None}
    return _print_events(_events(url, body))


def first_model(url: str) -> str:
    """Returns the name of the first model that the node lists. Raises `click.ClickException`."""
    try:
        with _open(url, "/v1/models") as answer:
            return str(json.load(answer)["data"][0]["id"])
    except (ValueError, LookupError, TypeError, *_NO_ANSWER) as error:
        raise click.ClickException(f"what answers at {url} is not a node") from error


def _root(url: str) -> str:
    """Returns the node's URL, given its address, its URL or the base URL of an SDK."""
    whole = url if "://" in url else f"http://{url}"
    return whole.rstrip("/").removesuffix("/v1")


def _open(url: str, path: str, body: dict[str, object] | None = None) -> http.client.HTTPResponse:
    """Returns the node's answer, once its head is there. Raises `click.ClickException`."""
    data = None if body is None else json.dumps(body).encode()
    try:
        request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})  # noqa: S310 - the person's own URL
        answer: http.client.HTTPResponse = _opener.open(request, timeout=_SILENCE_SECONDS)
    except urllib.error.HTTPError as error:
        raise click.ClickException(_refusal(error)) from error
    except (ValueError, *_NO_ANSWER) as error:
        raise click.ClickException(f"no node answers at {url}; start one with: b3node serve") from error
    return answer


def _events(url: str, body: dict[str, object]) -> Iterator[dict[str, Any]]:
    """Yields the events as they arrive; ends without an error if the node goes away."""
    with _open(url, "/v1/infer/responses", body) as answer:
        while line := _line(answer):
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


def _line(answer: http.client.HTTPResponse) -> bytes:
    """Returns the next line, with its end; empty at the end of the stream, also inside a line."""
    try:
        line = answer.readline()
    except _NO_ANSWER:
        return b""
    return line if line.endswith(b"\n") else b""


def _print_events(events: Iterator[dict[str, Any]]) -> dict[str, Any]:
    show = for_terminal if sys.stdout.isatty() else str
    final: dict[str, Any] = {}
    for event in events:
        match event["type"]:
            case "response.output_text.delta":
                click.echo(show(event["delta"]), nl=False)
            case "error":
                click.echo()
                raise click.ClickException(event["message"])
            case "response.completed" | "response.incomplete":
                final = event["response"]
    click.echo()
    if not final:
        raise click.ClickException("the node went away in the middle of its answer")
    click.secho(_summary(final), dim=True, err=True)
    return final


def for_terminal(text: str) -> str:
    """Returns the text without the characters that a terminal would obey."""
    return text.translate(_CONTROLS)


def _summary(response: dict[str, Any]) -> str:
    usage, timing = response["usage"], response["b3os"]["timing"]
    cut = " (cut at the limit)" if response["status"] == "incomplete" else ""
    line = f"{usage['input_tokens']} tokens in, {usage['output_tokens']} out{cut}"
    line += f"; first token after {timing['ttft_ms']:.0f} ms"
    if usage["output_tokens"] > 1:
        seconds = max(timing["total_ms"] - timing["ttft_ms"], 1.0) / 1000
        line += f", then {(usage['output_tokens'] - 1) / seconds:.0f} tokens/s"
    return line


def _refusal(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"]["message"])
    except (ValueError, LookupError, TypeError, *_NO_ANSWER):
        return f"the node answered {error.code}"
