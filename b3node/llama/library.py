"""The lowest module of this room: llama.cpp's C interface through ctypes, quiet, with its last messages kept.

No other room imports llama_cpp. Many of its calls abort the process on a bad argument, so every caller in
this room passes only ids and sizes that it has checked itself.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections import deque
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any, Final

# A failed internal check would otherwise start a debugger for its backtrace: slow, and on stderr.
os.environ.setdefault("GGML_NO_BACKTRACE", "1")
# A compute thread that waits for the others spins this long before it sleeps. OpenMP's own choice keeps a
# core from the process that sends the tokens (8.5 instead of 7.5 ms a token, one client on two cores), and
# without any spin each of a step's hundreds of waits is a wake-up.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def _native() -> Any:
    """Returns the module of the C functions, without the package around it.

    The package's own `__init__` loads its model classes, with a template engine and a database that are not
    used here: a third of the time in which an engine is imported.
    """
    name = "llama_cpp"
    spec = find_spec(name)
    if name in sys.modules or spec is None:
        return import_module(f"{name}.llama_cpp")
    sys.modules[name] = module_from_spec(spec)
    try:
        return import_module(f"{name}.llama_cpp")
    finally:
        del sys.modules[name]  # a later import of the package gets it whole


lib: Final[Any] = _native()
"""The C functions, by their own names; ctypes, so untyped."""

_WARNING: Final = 3
"""ggml_log_level: debug 1, info 2, warning 3, error 4, continuation 5 (ggml.h)."""
_last_words: deque[str] = deque(maxlen=8)


def _on_log(level: int, text: bytes | None, _: object) -> None:
    if level >= _WARNING and text and text.strip(b".\n "):
        _last_words.append(text.decode("utf-8", "replace").strip())


_log_callback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(_on_log)
"""Never collected: llama.cpp calls it until the process ends, and would crash."""


def begin() -> None:
    """Silences the library, starts its backends, and forgets earlier messages; call it before a load."""
    _last_words.clear()
    lib.llama_log_set(_log_callback, ctypes.c_void_p(0))
    lib.llama_backend_init()


def last_words() -> str:
    """Returns the library's newest warnings and errors, for the operator's log; never for a client."""
    return "; ".join(_last_words)
