"""Pauses between retries grow up to a cap, and differ between replicas. Those after refusals grow, too."""

from datetime import timedelta

from shared.runtime.backoff import Backoff, pause_after


def test_pauses_double_up_to_the_cap() -> None:
    backoff = Backoff(first=0.2, cap=10.0)
    for longest in (0.2, 0.4, 0.8, 1.6, 3.2, 6.4, *[10.0] * 1000):
        assert longest / 2 <= backoff.next_pause() <= longest


def test_a_success_begins_anew() -> None:
    backoff = Backoff(first=0.2, cap=10.0)
    for _ in range(10):
        backoff.next_pause()
    backoff.reset()
    assert backoff.next_pause() <= 0.2


def test_two_replicas_do_not_retry_in_step() -> None:
    one, other = Backoff(), Backoff()
    assert [one.next_pause() for _ in range(20)] != [other.next_pause() for _ in range(20)]


def test_the_pause_after_refusals_doubles_up_to_five_minutes() -> None:
    assert [pause_after(refusals).total_seconds() for refusals in (1, 2, 3, 8, 9)] == [1, 2, 4, 128, 256]
    assert pause_after(10) == pause_after(1_000_000) == timedelta(minutes=5)
