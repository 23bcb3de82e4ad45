"""Seconds that the front waits for its children before it kills them or gives up."""

from __future__ import annotations

import msgspec


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults are those of a node that serves. Seconds, unless a field says otherwise."""

    silence: float = 10.0
    """An engine that owes a step may be silent so long ..."""
    silence_steps: float = 20.0
    """... or for so many of its usual steps, whichever is longer ..."""
    silence_most: float = 60.0
    """... but never longer than this, which also holds before its first step, when no step is usual yet."""
    prepare: float = 2.0
    """CPU time of a prepare worker for one request; a template takes milliseconds."""
    prepare_megabyte: float = 4.0
    """CPU time on top for each megabyte of the request: tokenizing one takes up to 2.6 s."""
    prepare_starved: float = 4.0
    """Times that CPU time which a request may last on a machine with none to spare."""
    prepare_load: float = 60.0
    """Loading a vocabulary and probing its template."""
    worker: float = 30.0
    """Wait of a request for a worker that starts or is busy."""
    pause: float = 1.0
    """Wait before the first restart of a child that crashed; it doubles from crash to crash."""
    crashes: int = 5
    """Crashes within ten minutes after which an engine stays down."""
