"""`b3node ask`: streams one answer from a running node to the terminal.

It speaks plain HTTP through the standard library, on purpose: it shows that nothing else is needed.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

import click

DEFAULT_URL: Final = "http://127.0.0.1:8080"
_TIMEOUT: Final = 300.0
"""Seconds without a byte after which the question is given up."""
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@click.command()
@click.argument("question")
@click.option("--url", default=DEFAULT_URL, show_default=True, help="Where the node listens.")
@click.option("--model", help="Which of its models; the first one, when not said.")
@click.option("--instructions", help="The system prompt.")
@click.option("--max-output-tokens", type=click.IntRange(min=1), help="Where to cut the answer.")
@click.option("--temperature", type=click.FloatRange(0, 2), help="0 takes the most probable token always.")
def ask(question: str, url: str, model: str | None, **parameters: object) -> None:
    """Stream an answer to QUESTION from a running node."""
    stream(url, question, model=model, **parameters)


def stream(url: str, question: str, *, model: str | None = None, **parameters: object) -> dict[str, Any]:
    """Prints the answer as it comes, then the usage; returns the final response.

    Raises `click.ClickException` with the node's own message when it refuses or fails.
    """
    try:
        body = {"model": model or first_model(url), "input": question, "stream": True}
        body |= {name: value for name, value in parameters.items() if value is not None}
        return _print_events(_events(url, body))
    except urllib.error.HTTPError as error:
        raise click.ClickException(_refusal(error)) from error
    except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
        raise click.ClickException(f"no node answers at {url}; start one with: b3node serve") from error


def first_model(url: str) -> str:
    """The name of the first model that the node lists."""
    with _opener.open(f"{url}/v1/models", timeout=_TIMEOUT) as answer:
        return str(json.load(answer)["data"][0]["id"])


def _events(url: str, body: dict[str, object]) -> Iterator[dict[str, Any]]:
    request = urllib.request.Request(  # noqa: S310 - the person's own URL
        f"{url}/v1/infer/responses", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with _opener.open(request, timeout=_TIMEOUT) as answer:
        for line in answer:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


def _print_events(events: Iterator[dict[str, Any]]) -> dict[str, Any]:
    final: dict[str, Any] = {}
    for event in events:
        if event["type"] == "response.output_text.delta":
            click.echo(event["delta"], nl=False)
        elif event["type"] == "error":
            click.echo()
            raise click.ClickException(event["message"])
        elif event["type"] in {"response.completed", "response.incomplete"}:
            final = event["response"]
    click.echo()
    click.secho(_summary(final), dim=True, err=True)
    return final


def _summary(response: dict[str, Any]) -> str:
    usage, timing = response["usage"], response["b3os"]["timing"]
    seconds = max(timing["total_ms"] - timing["ttft_ms"], 1.0) / 1000
    speed = (usage["output_tokens"] - 1) / seconds
    cut = " (cut at the limit)" if response["status"] == "incomplete" else ""
    return (
        f"{usage['input_tokens']} tokens in, {usage['output_tokens']} out{cut}; "
        f"first token after {timing['ttft_ms']:.0f} ms, then {speed:.0f} tokens/s"
    )


def _refusal(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"the node answered {error.code}"
