"""The local queue: room per host and in all, rows that wait, breakers that open, probe, pause for longer and close."""

from collections.abc import Iterable

import pytest

from delivery.dispatch.circuit_breaker import BreakerChange, BreakerPolicy
from delivery.dispatch.host_state import FORGET_AFTER_SECONDS
from delivery.dispatch.local_queue import MAX_WAIT_SECONDS, Counts, LocalQueue
from delivery.errors import NotInPlace
from delivery.model import Delivery
from tests.support.builders import a_delivery

A, B, C = "a:80", "b:80", "c:80"
POLICY = BreakerPolicy(failures=3, first_pause=5.0, longest_pause=20.0)
NOTHING = Counts(0, 0, 0, 0)


def a_queue(max_calls: int = 10, max_calls_per_host: int = 4) -> LocalQueue:
    return LocalQueue(max_calls, max_calls_per_host, POLICY)


def take(queue: LocalQueue, host: str, number: int = 1, leased_at: float = 0.0, ready_at: float = 0.0) -> None:
    """Rows of the host are claimed and wait."""
    with queue.reservation(leased_at) as reservation:
        reservation.add([a_delivery(id=n, host=host) for n in range(number)])
        reservation.commit(ready_at)


def start(queue: LocalQueue, host: str, number: int = 1) -> None:
    for _ in range(number):
        assert queue.start_next(host, 0.0)


def called(queue: LocalQueue, times: int, seconds: float, *, healthy: bool = True, host: str = A) -> None:
    """Calls from the claim to the written outcome."""
    for _ in range(times):
        take(queue, host)
        start(queue, host)
        queue.end_call(host)
        queue.report(host, healthy=healthy, seconds=seconds, now=0.0)
        queue.note_written(1)


def failing(queue: LocalQueue, times: int, now: float) -> list[BreakerChange | None]:
    return [queue.report(A, healthy=False, seconds=0.01, now=now) for _ in range(times)]


def test_hosts_with_an_open_breaker_are_told_with_the_seconds_until_their_probe() -> None:
    queue = a_queue()
    failing(queue, 3, now=1.0)
    assert queue.seconds_until_probes(2.0, limit=10) == {A: 4.0}
    assert queue.seconds_until_probes(7.0, limit=10) == {A: 0.0}
    assert queue.seconds_until_probes(2.0, limit=0) == {}


def ids(deliveries: Iterable[Delivery]) -> list[int]:
    return [delivery.id for delivery in deliveries]


def test_a_row_takes_room_of_its_host_and_of_all_from_its_reservation_on() -> None:
    queue = a_queue()
    with queue.reservation(0.0) as reservation:
        reservation.add([a_delivery(host=A)] * 4)
        assert (queue.free, queue.room_of(A, 0.0), queue.room_of(B, 0.0)) == (6, 0, 4)
        assert queue.room(0.0) == (6, 4, {A: 0})
        assert queue.counts() == Counts(4, 0, 0, 0)
        assert queue.start_next(A, 0.0) is None, "its claim may yet fail"
        reservation.commit(1.0)
    assert (queue.counts(), queue.free) == (Counts(0, 4, 0, 0), 6)


def test_a_claim_that_fails_or_is_not_committed_keeps_no_room() -> None:
    queue = a_queue()

    def fail() -> None:
        with queue.reservation(0.0) as reservation:
            reservation.add([a_delivery(host=A), a_delivery(host=B)])
            raise ConnectionError

    with pytest.raises(ConnectionError):
        fail()
    with queue.reservation(0.0) as reservation:
        reservation.add([a_delivery(host=A)])
    assert (queue.counts(), queue.free, queue.room(0.0).exceptions) == (NOTHING, 10, {})


def test_a_row_goes_through_every_place_and_leaves_nothing_behind() -> None:
    queue = a_queue()
    take(queue, A, leased_at=1.0, ready_at=2.0)
    leased = queue.start_next(A, 3.0)
    assert leased
    assert (leased.delivery.host, leased.leased_at, leased.ready_at) == (A, 1.0, 2.0)
    assert queue.counts() == Counts(0, 0, 1, 0)
    queue.end_call(A)
    assert queue.counts() == Counts(0, 0, 0, 1)
    queue.note_written(1)
    assert (queue.counts(), queue.room(0.0).exceptions) == (NOTHING, {})


def test_no_row_leaves_a_place_where_it_is_not() -> None:
    queue = a_queue()
    take(queue, A)
    with pytest.raises(NotInPlace):
        queue.end_call(A)
    with pytest.raises(NotInPlace):
        queue.note_written(1)
    assert queue.counts() == Counts(0, 1, 0, 0)


def test_a_host_without_rows_here_is_no_exception() -> None:
    """Claims compare each row with each exception: hosts that were called a moment ago may be thousands."""
    queue = a_queue()
    called(queue, 1, seconds=0.01)
    assert queue.room(0.0).exceptions == {}


def test_the_oldest_row_of_a_host_is_called_first_and_hosts_that_waited_longer_come_first() -> None:
    queue = a_queue(max_calls=3)
    take(queue, A, 2)
    take(queue, B, 1)
    start(queue, A, 2)  # no row of A waits any more
    take(queue, A, 1)
    take(queue, B, 1)
    assert [leased.delivery.host for leased in queue.start_all(0.0)] == [B]
    queue.end_call(A)
    queue.note_written(1)
    assert [leased.delivery.host for leased in queue.start_all(0.0)] == [B], "it has waited for longer"
    queue = a_queue()
    take(queue, A, 3)
    assert ids(leased.delivery for leased in queue.start_all(0.0)) == [0, 1, 2]


def test_a_host_gets_no_more_calls_at_a_time_than_its_limit() -> None:
    queue = a_queue()
    take(queue, A, 5)
    assert len(queue.start_all(0.0)) == 4
    assert queue.start_next(A, 0.0) is None
    queue.end_call(A)
    assert queue.start_next(A, 0.0)
    assert queue.calls == 4


def test_all_hosts_together_get_no_more_calls_at_a_time_than_the_limit() -> None:
    queue = a_queue()
    for host in (A, B, C):
        take(queue, host, 4)
    assert [leased.delivery.host for leased in queue.start_all(0.0)] == [A] * 4 + [B] * 4 + [C] * 2
    assert (queue.calls, queue.free, queue.start_next(C, 0.0)) == (10, 0, None)


def test_no_call_begins_while_too_many_outcomes_wait_to_be_written() -> None:
    queue = a_queue()
    for _ in range(20):
        take(queue, A)
        start(queue, A)
        queue.end_call(A)
    take(queue, A)
    assert (queue.start_next(A, 0.0), queue.start_all(0.0), queue.free) == (None, [], 0)
    queue.note_written(1)
    assert queue.free == 9
    assert queue.start_next(A, 0.0)


def test_a_host_that_answers_quickly_may_have_rows_waiting_and_they_take_no_room_from_others() -> None:
    queue = a_queue()
    called(queue, 3, seconds=0.1)
    assert queue.room_of(A, 0.0) == 4 + 20, "what it will have answered in half a second"
    take(queue, A, 20)
    assert (queue.free, queue.room_of(A, 0.0)) == (10, 4)
    called(queue, 30, seconds=0.001, host=A)
    assert queue.room_of(A, 0.0) == 40 - 20, "but only so many in all"
    take(queue, A, 20)
    take(queue, B)
    assert (queue.free, queue.room_of(A, 0.0)) == (10 - 4 - 1, 0), "at the limit, only rows that can be called at once"
    start(queue, A, 4)
    assert (queue.free, queue.room_of(A, 0.0)) == (10 - 4 - 1, 3), "36 of A wait and one of B: three more may"


def busy_and_quick(queue: LocalQueue, waiting: int, calling: int) -> None:
    called(queue, 1, seconds=0.005)
    take(queue, A, waiting + calling)
    start(queue, A, calling)


def test_rows_that_wait_for_a_host_that_turns_bad_take_no_more_room_than_it_may_have_calls() -> None:
    queue = a_queue()
    busy_and_quick(queue, waiting=30, calling=2)
    assert queue.free == 10 - 2
    queue.report(A, healthy=False, seconds=0.005, now=0.0)
    assert queue.free == 10 - 4, "one failure"

    queue = a_queue()
    busy_and_quick(queue, waiting=30, calling=4)
    queue.report(A, healthy=True, seconds=60.0, now=0.0)
    assert queue.free == 10 - 4, "one slow answer"


def test_rows_that_have_waited_for_too_long_are_withdrawn_and_their_host_counts_as_slow_though_no_call_has_ended() -> (
    None
):
    queue = a_queue()
    busy_and_quick(queue, waiting=1, calling=4)
    assert queue.room_of(A, 0.0) > 4
    assert queue.withdraw_stale(MAX_WAIT_SECONDS) == []
    assert len(queue.withdraw_stale(MAX_WAIT_SECONDS + 1.0)) == 1
    assert (queue.counts(), queue.room_of(A, 0.0)) == (Counts(0, 0, 4, 1), 0)
    for _ in range(4):
        queue.end_call(A)
    called(queue, 20, seconds=0.005)
    assert queue.room_of(A, 0.0) > 4, "it is quick again"


def test_waiting_begins_when_the_claim_is_committed_however_long_the_database_took() -> None:
    queue = a_queue()
    take(queue, A, 1, leased_at=0.0, ready_at=5.0)
    take(queue, A, 2, leased_at=4.0, ready_at=9.0)
    take(queue, B, 1, leased_at=0.0, ready_at=5.0)
    assert queue.withdraw_stale(MAX_WAIT_SECONDS + 3.0) == []
    assert sorted(delivery.host for delivery in queue.withdraw_stale(MAX_WAIT_SECONDS + 6.0)) == [A, B]
    assert queue.counts() == Counts(0, 2, 0, 2)
    assert ids(queue.withdraw_all()) == [0, 1]
    assert queue.counts() == Counts(0, 0, 0, 4)


def test_the_waiting_rows_of_one_host_can_be_withdrawn() -> None:
    queue = a_queue()
    take(queue, A, 3)
    take(queue, B, 1)
    start(queue, A)
    assert ids(queue.withdraw_host(A)) == [1, 2]
    assert queue.withdraw_host(C) == []
    assert queue.counts() == Counts(0, 1, 1, 2)


def test_a_host_that_is_slow_unknown_or_failing_has_none_waiting() -> None:
    queue = a_queue()
    assert queue.room_of(A, 0.0) == 4
    called(queue, 30, seconds=0.01)
    called(queue, 1, seconds=0.01, healthy=False)
    assert queue.room_of(A, 0.0) == 4
    called(queue, 50, seconds=5.0)
    assert queue.room_of(A, 0.0) == 4


def test_more_is_wanted_when_half_of_the_waiting_rows_are_gone() -> None:
    queue = a_queue()
    called(queue, 1, seconds=0.1)
    take(queue, A, 24)
    start(queue, A, 4)
    wanted = []
    for _ in range(11):
        queue.end_call(A)
        start(queue, A)
        wanted.append(queue.wants_more(A, 0.0))
    assert wanted == [False] * 9 + [True] * 2
    take(queue, B)
    start(queue, B)
    assert queue.wants_more(B, 0.0), "a host that has none waiting always wants more"


def test_failures_in_a_row_open_the_breaker_once() -> None:
    queue = a_queue()
    assert failing(queue, 4, now=100.0) == [None, None, BreakerChange.OPENED, None]
    assert (queue.open_breakers, queue.room_of(A, 100.0), queue.room_of(B, 100.0)) == (1, 0, 4)
    assert queue.room(100.0).exceptions == {A: 0}


def test_a_success_in_between_starts_the_count_again() -> None:
    queue = a_queue()
    failing(queue, 2, now=1.0)
    assert queue.report(A, healthy=True, seconds=0.01, now=1.0) is None
    assert failing(queue, 2, now=1.0) == [None, None]
    assert queue.open_breakers == 0


def test_after_the_pause_one_probe_is_let_through() -> None:
    queue = a_queue()
    failing(queue, 3, now=100.0)
    assert queue.next_probe_in(101.0) == 4.0
    assert queue.room_of(A, 105.0) == 1
    take(queue, A, 2)
    assert queue.room_of(A, 105.0) == 0, "one probe at a time"
    assert queue.start_next(A, 104.0) is None
    assert len(queue.start_all(105.0)) == 1


def test_a_failed_probe_makes_the_pause_longer_up_to_its_limit() -> None:
    queue = a_queue()
    failing(queue, 3, now=100.0)
    now, pauses = 105.0, []
    for _ in range(4):
        now += 0.5
        queue.report(A, healthy=False, seconds=0.5, now=now)
        pauses.append(queue.next_probe_in(now))
        now += pauses[-1] or 0.0
    assert pauses == [10.0, 20.0, 20.0, 20.0]


def test_calls_that_began_before_the_breaker_opened_change_nothing() -> None:
    queue = a_queue()
    failing(queue, 3, now=100.0)
    failing(queue, 5, now=101.0)
    assert queue.next_probe_in(101.0) == 4.0
    queue.report(A, healthy=False, seconds=30.0, now=110.0)
    assert queue.next_probe_in(110.0) is None, "a hanging call that ends after the pause is no failed probe"
    assert queue.room_of(A, 110.0) == 1


def test_rows_of_a_claim_that_commits_after_the_breaker_opened_can_be_given_back_at_once() -> None:
    queue = a_queue()
    with queue.reservation(0.0) as reservation:
        reservation.add([a_delivery(id=1, host=A), a_delivery(id=2, host=B)])
        failing(queue, 3, now=100.0)
        reservation.commit(100.0)
    assert [delivery.id for delivery in queue.withdraw_uncallable(now=100.0)] == [1]
    assert queue.counts() == Counts(reserved=0, waiting=1, calling=0, unwritten=1)
    take(queue, A)
    assert queue.withdraw_uncallable(now=105.0) == [], "the probe's row stays"


def test_a_success_closes_it_and_gives_all_the_room_back() -> None:
    queue = a_queue()
    failing(queue, 3, now=100.0)
    assert queue.report(A, healthy=True, seconds=5.0, now=105.0) is BreakerChange.CLOSED
    assert (queue.open_breakers, queue.room_of(A, 105.0)) == (0, 4)


def test_old_failures_of_a_host_that_is_not_called_are_forgotten() -> None:
    queue = a_queue()
    failing(queue, 3, now=100.0)
    queue.report(B, healthy=False, seconds=0.01, now=100.0)
    queue.forget_idle(now=105.0 + FORGET_AFTER_SECONDS)
    assert queue.open_breakers == 1, "its pause ended only just then"
    queue.forget_idle(now=120.0 + FORGET_AFTER_SECONDS)
    assert (queue.open_breakers, queue.breaker_of(B)) == (0, None)


def test_the_speed_of_a_host_without_rows_here_is_forgotten() -> None:
    queue = a_queue()
    called(queue, 3, seconds=0.1)
    called(queue, 3, seconds=0.1, host=B)
    take(queue, B)
    queue.forget_idle(now=100.0)
    assert (queue.room_of(A, 100.0), queue.room_of(B, 100.0)) == (4, 4 + 20 - 1)
