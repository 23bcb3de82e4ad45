from __future__ import annotations

from array import array

import numpy as np
import pytest

from b3node.engine.cells import Cells


def holding(cells, slot, tokens, namespace="org"):
    """Opens a running slot that computed `tokens`, sharing what is there."""
    known = np.array(tokens, np.int32)
    source, length = cells.match(namespace, known)
    cells.open(slot, namespace)
    if length:
        cells.share(source, slot, length)
    if length < len(tokens):
        cells.extend(slot, array("i", tokens[length:]))
    cells.check()
    return length


A = list(range(40))
B = [*range(20), *range(100, 130)]


def test_shared_positions_are_counted_once() -> None:
    """Two slots with a common beginning use its cells once."""
    cells = Cells(1000)

    holding(cells, 0, A)
    shared = holding(cells, 1, B)

    assert shared == 20
    assert cells.used == 40 + 30


def test_a_release_frees_only_what_nobody_else_reads() -> None:
    """The common part stays while somebody reads it, and goes with the last reader."""
    cells = Cells(1000)
    holding(cells, 0, A)
    holding(cells, 1, B)

    cells.release(0)
    cells.check()

    assert cells.used == 50
    cells.release(1)
    assert cells.used == 0


def test_kept_slots_are_matched_and_not_locked() -> None:
    """A finished slot still serves its prefix, but its cells can be had."""
    cells = Cells(1000)
    holding(cells, 0, A)

    assert cells.keep(0)
    cells.check()

    assert cells.locked == 0
    assert cells.match("org", np.array([*A, 1, 2], np.int32)) == (0, 40)
    assert cells.unlocked_part(0, 30) == 30


def test_what_is_hardly_worth_it_is_not_kept() -> None:
    """A slot with a few tokens is released instead of kept."""
    cells = Cells(1000)
    holding(cells, 0, [1, 2, 3])

    assert not cells.keep(0)
    assert cells.used == 0


def test_the_longest_of_several_matches_wins() -> None:
    """Slots that computed equal tokens on their own are compared whole."""
    cells = Cells(1000)
    for slot, tokens in enumerate((A[:25], A)):
        cells.open(slot, "org")
        cells.extend(slot, array("i", tokens))

    assert cells.match("org", np.array(A, np.int32)) == (1, 40)


def test_namespaces_do_not_see_each_other() -> None:
    """A match never crosses organizations."""
    cells = Cells(1000)
    holding(cells, 0, A, namespace="a")

    assert cells.match("b", np.array(A, np.int32)) == (-1, 0)


def test_the_least_recently_used_slot_goes_first() -> None:
    """Being read counts as use."""
    cells = Cells(1000)
    for slot in range(3):
        cells.open(slot, "org")
        cells.extend(slot, array("i", [slot] * 20))
        cells.keep(slot)

    cells.open(5, "org")
    cells.share(0, 5, 10)

    assert cells.kept == [1, 2, 0]
    assert cells.victim() == 1


def test_who_keeps_more_than_its_share_gives_first() -> None:
    """An organization that flooded the cache does not push another one's prefix out."""
    cells = Cells(1000)
    cells.open(0, "small")
    cells.extend(0, array("i", range(30)))
    cells.keep(0)
    for slot in range(1, 5):
        cells.open(slot, "flood")
        cells.extend(slot, array("i", [slot] * 100))
        cells.keep(slot)

    assert cells.victim() == 1


def test_check_notices_a_miscount() -> None:
    """The check is able to fail."""
    cells = Cells(1000)
    holding(cells, 0, A)
    cells.used += 1

    with pytest.raises(ValueError, match="cells in use"):
        cells.check()
