"""Identifiers of the contract: a prefix and a ULID in lower-case Crockford base 32."""

from __future__ import annotations

import secrets
import time
from typing import Final

CROCKFORD: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_BASE36: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def ulid(milliseconds: int, randomness: int) -> str:
    """Returns 26 lower-case Crockford characters of a 48-bit time (ms since 1970) and 80 random bits.

    >>> ulid(0, 0)
    '00000000000000000000000000'
    """
    value = (milliseconds & (1 << 48) - 1) << 80 | randomness & (1 << 80) - 1
    return "".join(CROCKFORD[value >> shift & 31] for shift in range(125, -5, -5))


def new_ulid() -> str:
    """Returns a ULID of this moment."""
    return ulid(time.time_ns() // 1_000_000, secrets.randbits(80))


def new_response_id() -> str:
    """Returns `resp_` + ULID."""
    return "resp_" + new_ulid()


def new_request_id() -> str:
    """Returns `req_` + ULID: the value of `x-request-id`."""
    return "req_" + new_ulid()


def item_id(prefix: str, response_id: str, index: int) -> str:
    """Returns an output item's id: `msg`, `rs` or `fc`, the response's own ULID, and the output index.

    >>> item_id("msg", "resp_01m5t5tmscqev5tf32q87tr1v5", 0)
    'msg_01m5t5tmscqev5tf32q87tr1v5_0'
    """
    return f"{prefix}_{response_id.removeprefix('resp_')}_{index}"


def new_call_id() -> str:
    """Returns `call_` + 24 random base-36 characters: no counter, so it cannot repeat across turns."""
    return "call_" + "".join(secrets.choice(_BASE36) for _ in range(24))
