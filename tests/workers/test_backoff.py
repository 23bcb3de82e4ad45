from __future__ import annotations

from b3node.workers.backoff import Backoff


def test_crashes_in_a_row_wait_longer_and_longer_and_then_give_up() -> None:
    """1, 2, 4, 8 seconds; the fifth crash within ten minutes is the last."""
    backoff = Backoff()

    assert [backoff.crashed(now=float(i), lived=0.0) for i in range(5)] == [1, 2, 4, 8, None]


def test_rare_crashes_never_give_up_and_wait_at_most_a_minute() -> None:
    """Crashes far apart are restarted for ever."""
    backoff = Backoff()

    waits = [backoff.crashed(now=i * 200.0, lived=100.0) for i in range(12)]

    assert None not in waits
    assert max(wait for wait in waits if wait is not None) == 60


def test_a_long_life_is_forgiven() -> None:
    """A child that served for ten minutes begins anew."""
    backoff = Backoff()
    for i in range(4):
        backoff.crashed(now=float(i), lived=0.0)

    assert backoff.crashed(now=1000.0, lived=900.0) == 1


def test_what_tenants_can_crash_is_always_started_again_soon() -> None:
    """A child that input can crash stays down for a moment only, however often."""
    backoff = Backoff(longest=1.0, most=None)

    assert [backoff.crashed(now=float(i), lived=0.0) for i in range(20)] == [1] * 20
