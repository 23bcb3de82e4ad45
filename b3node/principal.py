"""The principal of a request: on whose behalf it is served.

A request is authenticated once, before its body is read. From there on its principal goes with it: to the
record and so to everything that is counted, and as the namespace of the prefix cache to the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The tenant of a request, and the credential that it came with."""

    organization: str
    """The tenant. Nothing of one organization is ever visible to another one."""

    project: str
    """A part of the organization, which a key belongs to."""

    key_id: str | None
    """The public id of the API key, never the key; None where no key was asked for."""

    scopes: frozenset[str]
    """The permissions of the key, as the contract names them; empty without a key."""

    @property
    def namespace(self) -> str:
        """The requests that this one may share prefixes with: those of its organization."""
        return self.organization


LOCAL: Final = Principal(organization="local", project="local", key_id=None, scopes=frozenset())
"""The one principal of a node without keys."""

Authenticate = Callable[[Iterable[tuple[bytes, bytes]]], Principal]
"""Returns the principal of a request from its headers. Raises `Refusal` `unauthorized`."""


def local(headers: Iterable[tuple[bytes, bytes]]) -> Principal:  # noqa: ARG001 - an `Authenticate`; without keys no header counts
    """Returns `LOCAL` for every request: a node without keys."""
    return LOCAL
