"""The one exception of the product, and the table that maps its codes to HTTP.

Every error that a client sees is a `Refusal`; any other exception is a bug and becomes a 500 that carries
only the request id. Messages are the product's own words: a library's message, a path, an address or a remote
server's words never get in here (contract decisions, "Errors").
"""

from __future__ import annotations

from typing import Final, Literal

Code = Literal[
    "invalid_request",
    "unsupported_parameter",
    "context_length_exceeded",
    "unauthorized",
    "credits_exhausted",
    "forbidden",
    "egress_denied",
    "not_found",
    "model_not_available",
    "method_not_allowed",
    "payload_too_large",
    "unsupported_media_type",
    "rate_limited",
    "concurrency_limited",
    "quota_exceeded",
    "internal",
    "infer_backend_unavailable",
    "capacity_unavailable",
    "node_unavailable",
]

_INVALID, _SERVER, _LIMIT = "invalid_request_error", "server_error", "rate_limit_error"

HTTP: Final[dict[Code, tuple[int, str]]] = {
    "invalid_request": (400, _INVALID),
    "unsupported_parameter": (400, _INVALID),
    "context_length_exceeded": (400, _INVALID),
    "unauthorized": (401, "authentication_error"),
    "credits_exhausted": (402, _LIMIT),
    "forbidden": (403, "permission_error"),
    "egress_denied": (403, "permission_error"),
    "not_found": (404, _INVALID),
    "model_not_available": (404, _INVALID),
    "method_not_allowed": (405, _INVALID),
    "payload_too_large": (413, _INVALID),
    "unsupported_media_type": (415, _INVALID),
    "rate_limited": (429, _LIMIT),
    "concurrency_limited": (429, _LIMIT),
    "quota_exceeded": (429, _LIMIT),
    "internal": (500, _SERVER),
    "infer_backend_unavailable": (503, _SERVER),
    "capacity_unavailable": (503, _SERVER),
    "node_unavailable": (503, _SERVER),
}
"""Code to (status, type), as the contract's error table has it."""

BUSY_RETRY_SECONDS: Final = 2
"""`Retry-After` of a refusal for want of capacity: by then a slot or a worker is probably free."""

MAX_MESSAGE_CHARS = 300
"""Characters a message may have (contract decisions, "Errors")."""


class Refusal(Exception):  # noqa: N818 - it is an answer, not a failure of the program
    """An answer other than success, ready to be put on the wire.

    Args:
        code: one of the contract's codes; fixes the HTTP status and the error type.
        message: the product's own words, cut to `MAX_MESSAGE_CHARS` characters.
        param: the path of what is refused, such as `input[2].content[0].image_url`, or None.
        retry_after: seconds (at least 1) for the `Retry-After` header of a 429 or 503.
    """

    def __init__(
        self, code: Code, message: str, *, param: str | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = (
            message if len(message) <= MAX_MESSAGE_CHARS else message[: MAX_MESSAGE_CHARS - 1] + "…"
        )
        self.param = param
        self.retry_after = retry_after

    @property
    def status(self) -> int:
        """Returns the HTTP status of this refusal's code."""
        return HTTP[self.code][0]

    @property
    def type(self) -> str:
        """Returns the OpenAI error type of this refusal's code."""
        return HTTP[self.code][1]


def busy(message: str = "The node is busy; try again in a moment.") -> Refusal:
    """Returns the refusal of a request that the node has no capacity for at the moment."""
    return Refusal("capacity_unavailable", message, retry_after=BUSY_RETRY_SECONDS)


def too_large(size: int, limit: int) -> Refusal:
    """Returns the refusal of a body; `size` is its length, or as much of it as is known so far."""
    return Refusal("payload_too_large", f"The request body has {size} bytes; at most {limit} are accepted.")


def quoted(text: str, limit: int = 64) -> str:
    """Quotes a client's own text for a message: printable, at most `limit` characters."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return '"' + "".join(c if c.isprintable() else "�" for c in cut) + '"'
