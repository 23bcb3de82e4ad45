"""How long the front waits for its children before it thinks ill of them."""

from __future__ import annotations

import msgspec


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """All times are seconds; the defaults are those of a node that serves.

    An engine that owes a step may be silent for `silence`, or for `silence_steps` of its usual steps where that
    is longer, but never for more than `silence_most`. Until it has made its first step nobody knows what is
    usual, so `silence_most` holds then.

    A prepare worker may compute for `prepare` on one request (a template takes milliseconds), and `prepare_megabyte` on
    top for each megabyte of the request, because tokenizing one takes up to 2.6 s. That is CPU time: on a machine that
    has none to spare it may last `prepare_starved` times as long. Loading a vocabulary and trying its template may take `prepare_load`. A request waits for a worker
    that starts or is busy for `worker`.

    `pause` is the wait before the first restart of a child that crashed; it doubles from crash to crash. An
    engine that crashed `crashes` times within ten minutes stays down.
    """

    silence: float = 10.0
    silence_steps: float = 20.0
    silence_most: float = 60.0
    prepare: float = 2.0
    prepare_megabyte: float = 4.0
    prepare_starved: float = 4.0
    prepare_load: float = 60.0
    worker: float = 30.0
    pause: float = 1.0
    crashes: int = 5
