"""The record of one request: filled in while it is served, handed to the sinks at its end.

It never holds a prompt, an output, a schema, a URL's query or a credential, so no sink can leak them.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from b3node.errors import Code, Refusal
from b3node.principal import Principal
from b3node.service.timing import Stopwatch

Disconnect = Literal["body", "before_head", "mid_stream", "stalled"]
"""When the client left: while it sent its body, before the head of its answer, in the middle of a stream, or
by not reading any more."""

_UNLOGGED_FIELDS: Final = frozenset({"timing", "principal"})


class Record(msgspec.Struct, kw_only=True):
    """One request. Mutable: each room adds its part. None is unknown, or did not happen.

    Counts are tokens, sizes are bytes.
    """

    request_id: str
    """Ours, and new for every answer."""

    timing: Stopwatch
    method: str

    principal: Principal | None = None
    """None until the request is authenticated."""

    route: str | None = None
    """The path of the route that matched, so it is never the client's own text."""

    status: int | None = None
    code: Code | None = None
    param: str | None = None
    stream: bool | None = None
    model: str | None = None
    response_id: str | None = None
    input_items: int | None = None
    tools: int | None = None

    loosened: tuple[str, ...] | None = None
    """The parts of the functions' schemas that no grammar enforces, by path and keyword."""

    max_output_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    finish_reason: str | None = None
    disconnect: Disconnect | None = None

    retry_after: int | None = None
    """Seconds."""

    bytes_in: int | None = None
    bytes_out: int | None = None

    def refuse(self, refusal: Refusal) -> None:
        """Keeps the reason for which the request got no answer, or only the beginning of one."""
        self.code = refusal.code
        self.param = refusal.param
        self.retry_after = refusal.retry_after

    def fields(self) -> dict[str, object]:
        """Returns the fields of the log line: all that is known, and the milliseconds of every phase."""
        known: dict[str, object] = {
            name: value
            for name in self.__struct_fields__
            if name not in _UNLOGGED_FIELDS and (value := getattr(self, name)) is not None
        }
        return known | self.timing.fields() | self._time_per_token()

    def _time_per_token(self) -> dict[str, object]:
        model, tokens = self.timing.get("model"), self.output_tokens
        waited = (self.timing.get("queue") or 0.0) + (self.timing.get("prefill") or 0.0)
        if model is None or tokens is None or tokens < 2:
            return {}
        return {"tpot_ms": round(max(model - waited, 0.0) / (tokens - 1), 2)}
