from __future__ import annotations

from array import array

import numpy as np
import pytest

from b3node.engine.cache.host_cache import HostCache
from b3node.engine.cache.prefix_cache import PrefixCache
from b3node.engine.plan import Checkpoint, Drop, Forget, Load, Restore, Save, Share

A = list(range(40))
B = [*range(20), *range(100, 130)]


def cells(*, total=1000, host_cache=0, stateful=False):
    """Cells with a host cache of so many bytes, one a token, ten a state."""
    books = HostCache(budget=host_cache, token_bytes=1, state_bytes=10 if stateful else 0)
    return PrefixCache(total, books, stateful=stateful)


def ids(tokens):
    return np.array(tokens, np.int32)


def hold(held, slot, tokens, namespace="org"):
    """Opens a running slot that computed `tokens`; returns how many of them it read from the cache."""
    match = held.match(namespace, ids(tokens))
    held.enter(slot, namespace, match)
    if match.length < len(tokens):
        held.extend(slot, array("i", tokens[match.length :]))
    held.check()
    return match.length


def test_shared_positions_are_counted_once() -> None:
    """Two slots with a common beginning use its cells once."""
    held = cells()

    hold(held, 0, A)
    shared = hold(held, 1, B)

    assert shared == 20
    assert held.used == 40 + 30
    assert held.take_moves() == (Share(0, 1, 20),)


def test_a_release_frees_only_cells_without_another_reader() -> None:
    """The common part stays while a slot reads it, and goes with the last reader."""
    held = cells()
    hold(held, 0, A)
    hold(held, 1, B)

    held.release(0, save=False)
    held.check()

    assert held.used == 50
    held.release(1, save=False)
    held.check()
    assert held.used == 0


def test_kept_slots_are_matched_and_not_locked() -> None:
    """A finished slot still serves its prefix, but its cells can be freed."""
    held = cells()
    hold(held, 0, A)

    assert held.keep(0)
    held.check()
    match = held.match("org", ids([*A, 1, 2]))

    assert held.locked == 0
    assert (match.length, match.resident) == (40, 40)
    assert held.newly_locked(match) == 40


def test_a_short_prefix_is_not_kept() -> None:
    """A slot with a few tokens is released instead of kept."""
    held = cells()
    hold(held, 0, [1, 2, 3])

    assert not held.keep(0)
    assert held.used == 0


def test_the_longest_of_several_matches_wins() -> None:
    """Slots that computed equal tokens on their own are compared whole."""
    held = cells()
    for slot, tokens in enumerate((A[:25], A)):
        held.enter(slot, "org", held.match("nobody", ids(A)))
        held.extend(slot, array("i", tokens))

    match = held.match("org", ids(A))

    assert match.length == 40
    assert held.resident_slot(match) == 1


def test_namespaces_do_not_see_each_other() -> None:
    """A match never crosses organizations."""
    held = cells()
    hold(held, 0, A, namespace="a")

    assert held.match("b", ids(A)).length == 0


def test_the_least_recently_used_slot_goes_first() -> None:
    """Being read counts as use."""
    held = cells()
    for slot in range(3):
        hold(held, slot, [slot] * 20)
        held.keep(slot)

    hold(held, 5, [0] * 20 + [7])

    assert held.kept == [1, 2, 0]
    assert held.victim() == 1
    assert held.victim(spare=1) == 2


def test_a_namespace_that_keeps_more_than_its_share_is_evicted_first() -> None:
    """An organization that flooded the cache does not push another one's prefix out."""
    held = cells()
    hold(held, 0, list(range(30)), namespace="small")
    held.keep(0)
    for slot in range(1, 5):
        hold(held, slot, [slot] * 100, namespace="flood")
        held.keep(slot)

    assert held.victim() == 1


def test_an_evicted_prefix_is_loaded_from_host_memory() -> None:
    """A released slot's runs are saved once and loaded for the next prompt with that prefix."""
    held = cells(host_cache=1000)
    hold(held, 0, A)
    held.keep(0)
    held.release(0, save=True)
    held.check()
    (save, drop) = held.take_moves()

    shared = hold(held, 1, [*A[:30], 99])

    assert (save.start, save.end, drop) == (0, 40, Drop(0))
    assert shared == 30
    assert held.take_moves() == (Load(1, 0, 30, save.key),)
    assert held.used == 31


def test_a_run_is_saved_once_however_many_read_it() -> None:
    """The common part of two conversations lies in host memory once."""
    held = cells(host_cache=1000)
    hold(held, 0, A)
    hold(held, 1, B)
    for slot in (0, 1):
        held.release(slot, save=True)
        held.check()

    saves = [move for move in held.take_moves() if isinstance(move, Save)]

    assert sorted((save.start, save.end) for save in saves) == [(0, 20), (20, 40), (20, 50)]


def test_a_loaded_run_is_not_saved_again() -> None:
    """A run that still has its copy is dropped without another one."""
    held = cells(host_cache=1000)
    hold(held, 0, A)
    held.release(0, save=True)
    hold(held, 0, A)
    held.take_moves()

    held.release(0, save=True)
    held.check()

    assert held.take_moves() == (Drop(0),)


def test_the_budget_evicts_the_least_recently_used_copy() -> None:
    """Host memory is bounded; a prefix goes after the runs below it."""
    held = cells(host_cache=70)
    hold(held, 0, A)
    held.release(0, save=True)
    hold(held, 0, [*A, *[7] * 20])
    held.release(0, save=True)
    held.check()

    hold(held, 1, [3] * 30)
    held.release(1, save=True)
    held.check()

    assert held.match("org", ids([*A, *[7] * 20])).length == 0
    assert held.match("org", ids([3] * 30)).length == 30
    assert sum(isinstance(move, Forget) for move in held.take_moves()) == 2


def test_a_stateful_model_is_entered_only_where_its_state_was_copied() -> None:
    """Between two checkpoints nothing can be read, although cells hold it."""
    held = cells(host_cache=1000, stateful=True)
    held.enter(0, "org", held.match("org", ids(A)))
    held.extend(0, array("i", A[:25]))
    held.checkpoint(0)
    held.extend(0, array("i", A[25:]))
    held.check()

    match = held.match("org", ids([*A[:35], 1, 2]))
    held.enter(1, "org", match)
    held.check()
    (checkpoint, share, restore) = held.take_moves()

    assert match.length == 25
    assert (checkpoint.slot, share, restore) == (0, Share(0, 1, 25), Restore(1, checkpoint.key))
    assert isinstance(checkpoint, Checkpoint)


def test_check_notices_a_miscount() -> None:
    """The check is able to fail."""
    held = cells()
    hold(held, 0, A)
    held.used += 1

    with pytest.raises(ValueError, match="cells in use"):
        held.check()
