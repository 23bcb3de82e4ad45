"""What is known of one request: filled in as it goes along, written to the log at its end.

It never holds a prompt, an output, a schema, a URL's query or a credential, so the log cannot leak them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from b3node.errors import Code, Refusal
from b3node.service.timing import Stopwatch

Disconnect = Literal["body", "before_head", "mid_stream", "stalled"]
"""Where the client left: while it sent its body, before it got an answer, in the middle of a stream, or by
not reading any more."""


class Record(msgspec.Struct, kw_only=True):
    """One request. Mutable: each room adds what it learns; None is unknown, or did not happen.

    `request_id` is ours and new for every answer; `route` is the path of the route that matched, so it is
    never the client's own text; counts are tokens, sizes are bytes; `loosened` names what of the functions' schemas
    is not enforced while a call is written, by path and keyword.
    """

    request_id: str
    timing: Stopwatch
    method: str
    route: str | None = None
    status: int | None = None
    code: Code | None = None
    param: str | None = None
    stream: bool | None = None
    model: str | None = None
    response_id: str | None = None
    input_items: int | None = None
    tools: int | None = None
    loosened: tuple[str, ...] | None = None
    max_output_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    finish_reason: str | None = None
    disconnect: Disconnect | None = None
    retry_after: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None

    def refuse(self, refusal: Refusal) -> None:
        """Keeps why the request got no answer, or only the beginning of one."""
        self.code = refusal.code
        self.param = refusal.param
        self.retry_after = refusal.retry_after

    def fields(self) -> dict[str, object]:
        """The fields of the log line: what is known, and the milliseconds of every phase."""
        known: dict[str, object] = {
            name: value
            for name in self.__struct_fields__
            if name != "timing" and (value := getattr(self, name)) is not None
        }
        return known | self.timing.fields() | self._pace()

    def _pace(self) -> dict[str, object]:
        model, tokens = self.timing.of("model"), self.output_tokens
        waited = (self.timing.of("queue") or 0.0) + (self.timing.of("prefill") or 0.0)
        if model is None or tokens is None or tokens < 2:
            return {}
        return {"tpot_ms": round(max(model - waited, 0.0) / (tokens - 1), 2)}
