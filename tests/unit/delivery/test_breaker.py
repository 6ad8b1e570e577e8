"""A breaker by itself: it opens, lets a single call through, pauses for longer, and never for too long."""

from delivery.dispatch.circuit_breaker import Breaker, BreakerPolicy, after_failure

POLICY = BreakerPolicy(failures=3, first_pause=5.0, longest_pause=30.0)
LIMIT = 4


def failed(breaker: Breaker, *moments: float) -> Breaker:
    for now in moments:
        breaker = after_failure(breaker, POLICY, now, now)
    return breaker


def test_so_many_failures_in_a_row_open_it() -> None:
    two = failed(Breaker(0.0), 100.0, 101.0)
    assert (two.is_tripped, two.calls_allowed(LIMIT, 101.0)) == (False, LIMIT)
    three = failed(two, 102.0)
    assert (three.is_tripped, three.calls_allowed(LIMIT, 102.0)) == (True, 0)


def test_when_the_pause_is_over_one_call_is_let_through() -> None:
    opened = failed(Breaker(0.0), 100.0, 100.0, 100.0)
    assert [opened.calls_allowed(LIMIT, now) for now in (104.9, 105.0, 1000.0)] == [0, 1, 1]


def test_a_probe_that_fails_doubles_the_pause_up_to_its_limit() -> None:
    breaker, pauses = failed(Breaker(0.0), 100.0, 100.0, 100.0), []
    for _ in range(4):
        assert breaker.open_until is not None
        breaker = failed(breaker, breaker.open_until)
        pauses.append(breaker.pause)
    assert pauses == [10.0, 20.0, 30.0, 30.0]


def test_a_call_that_began_before_it_opened_makes_the_pause_no_longer() -> None:
    opened = failed(Breaker(0.0), 100.0, 100.0, 100.0)
    assert failed(opened, 101.0, 104.9) == opened
    assert after_failure(opened, POLICY, began_at=99.0, now=110.0) == opened, "it ended after the pause"
