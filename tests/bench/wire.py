"""What a Responses endpoint sends, as bytes: for tests of the client that reads them."""

from __future__ import annotations

import json


def event(kind, **fields):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def delta(text):
    return event("response.output_text.delta", delta=text)


def completed(*, tokens_in=7, tokens_out=3, cached=2, kind="response.completed"):
    usage = {
        "input_tokens": tokens_in,
        "output_tokens": tokens_out,
        "input_tokens_details": {"cached_tokens": cached},
    }
    return event(kind, response={"usage": usage})


def chunks(body, size):
    """The body in HTTP chunks of `size` bytes, which cut events anywhere."""
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts) + b"0\r\n\r\n"


def answer(body, *, status=200, chunk=None):
    """A whole HTTP answer, chunked where `chunk` says how finely."""
    head = f"HTTP/1.1 {status} Whatever\r\ncontent-type: text/event-stream\r\n"
    if chunk is None:
        return f"{head}\r\n".encode() + body
    return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks(body, chunk)
