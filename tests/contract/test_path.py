"""Paths name a place in the request as the contract spells it."""

from __future__ import annotations

from b3node.contract.path import element, member


def test_paths_are_spelled_as_the_wire_nests() -> None:
    """Members follow a dot, elements stand in brackets, the request itself has no name."""
    assert member(element(member(element(member("", "input"), 2), "content"), 0), "image_url") == (
        "input[2].content[0].image_url"
    )


def test_a_clients_own_name_is_cut_and_printable() -> None:
    """Names that a client made up are bounded, and never carry control characters."""
    assert member("metadata", "k" * 65) == "metadata." + "k" * 63 + "…"
    assert member("metadata", "a\nb") == "metadata.a�b"
    assert member("metadata", "") == 'metadata.""'
    assert member("", "") == '""'
