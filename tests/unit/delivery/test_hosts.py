"""Room per host, and breakers that open, probe, pause for longer and close."""

from delivery.breaker import BreakerPolicy
from delivery.hosts import FORGET_AFTER, BreakerChange, Hosts

POLICY = BreakerPolicy(failures=3, first_pause=5.0, longest_pause=20.0)


def some_hosts() -> Hosts:
    return Hosts(max_in_flight=10, max_per_host=4, policy=POLICY)


def failing(hosts: Hosts, times: int, now: float) -> list[BreakerChange | None]:
    return [hosts.report("a:80", well=False, seconds=0.01, now=now) for _ in range(times)]


def test_a_call_takes_a_slot_of_its_host_and_of_all() -> None:
    hosts = some_hosts()
    for _ in range(4):
        hosts.take("a:80")
    assert (hosts.free, hosts.room_of("a:80", 0.0), hosts.room_of("b:80", 0.0)) == (6, 0, 4)
    assert hosts.exceptions(0.0) == {"a:80": 0}
    hosts.let_go("a:80")
    assert (hosts.free, hosts.room_of("a:80", 0.0)) == (7, 1)


def test_a_host_at_rest_is_no_exception() -> None:
    """Claims compare each row with each exception: those that were called a moment ago may be thousands."""
    hosts = some_hosts()
    hosts.take("a:80")
    hosts.let_go("a:80")
    called(hosts, 1, seconds=0.01)
    assert hosts.exceptions(0.0) == {}


def called(hosts: Hosts, times: int, seconds: float, *, well: bool = True) -> None:
    """Calls to a:80 from beginning to end."""
    for _ in range(times):
        hosts.take("a:80")
        hosts.start("a:80")
        hosts.hang_up("a:80")
        hosts.report("a:80", well=well, seconds=seconds, now=0.0)
        hosts.write_off()


def test_a_host_is_called_no_more_often_at_a_time_than_it_may_be() -> None:
    hosts = some_hosts()
    for _ in range(4):
        hosts.take("a:80")
        assert hosts.may_start("a:80", 0.0)
        hosts.start("a:80")
    assert not hosts.may_start("a:80", 0.0)
    hosts.hang_up("a:80")
    assert hosts.may_start("a:80", 0.0)
    assert (hosts.free, hosts.in_flight) == (7, 3)


def test_nobody_is_called_while_too_many_outcomes_wait_to_be_written() -> None:
    hosts = some_hosts()
    for _ in range(20):
        hosts.take("a:80")
        assert hosts.may_start("a:80", 0.0)
        hosts.start("a:80")
        hosts.hang_up("a:80")
    hosts.take("a:80")
    assert (hosts.may_start("a:80", 0.0), hosts.free) == (False, 0)
    hosts.write_off()
    assert (hosts.may_start("a:80", 0.0), hosts.free) == (True, 9)


def test_a_host_that_answers_quickly_may_have_rows_waiting_and_they_take_nobodys_place() -> None:
    hosts = some_hosts()
    called(hosts, 3, seconds=0.1)
    assert hosts.room_of("a:80", 0.0) == 4 + 20, "what it will have answered in half a second"
    for _ in range(20):
        hosts.take("a:80")
    assert (hosts.free, hosts.room_of("a:80", 0.0)) == (10, 4)
    called(hosts, 30, seconds=0.001)
    assert hosts.room_of("a:80", 0.0) == 4 + 40 - 20, "but only so many in all"
    for _ in range(20):
        hosts.take("a:80")
    hosts.take("b:80")
    assert (hosts.free, hosts.room_of("a:80", 0.0)) == (9, 4), "however many there are, others have their places"


def busy_and_quick(hosts: Hosts, waiting: int, calling: int) -> None:
    called(hosts, 1, seconds=0.005)
    for _ in range(waiting + calling):
        hosts.take("a:80")
    for _ in range(calling):
        hosts.start("a:80")


def test_what_waits_for_a_host_that_turns_bad_takes_no_more_places_than_it_may_have_calls() -> None:
    hosts = some_hosts()
    busy_and_quick(hosts, waiting=30, calling=2)
    assert hosts.free == 10 - 2
    hosts.report("a:80", well=False, seconds=0.005, now=0.0)
    assert hosts.free == 10 - 4, "one failure"

    hosts = some_hosts()
    busy_and_quick(hosts, waiting=30, calling=4)
    hosts.report("a:80", well=True, seconds=60.0, now=0.0)
    assert hosts.free == 10 - 4, "one slow answer"


def test_a_host_whose_rows_have_waited_for_long_is_slow_though_no_call_has_ended() -> None:
    hosts = some_hosts()
    busy_and_quick(hosts, waiting=0, calling=4)
    assert hosts.room_of("a:80", 0.0) > 4
    hosts.notice_slowness("a:80")
    assert hosts.room_of("a:80", 0.0) == 0
    for _ in range(4):
        hosts.hang_up("a:80")
    called(hosts, 20, seconds=0.005)
    assert hosts.room_of("a:80", 0.0) > 4, "it is quick again"


def test_a_host_that_is_slow_unknown_or_failing_has_none_waiting() -> None:
    hosts = some_hosts()
    assert hosts.room_of("a:80", 0.0) == 4
    called(hosts, 30, seconds=0.01)
    called(hosts, 1, seconds=0.01, well=False)
    assert hosts.room_of("a:80", 0.0) == 4
    called(hosts, 50, seconds=5.0)
    assert hosts.room_of("a:80", 0.0) == 4


def test_more_is_wanted_when_half_of_what_waited_is_gone() -> None:
    hosts = some_hosts()
    called(hosts, 1, seconds=0.1)
    for _ in range(24):
        hosts.take("a:80")
    for _ in range(4):
        hosts.start("a:80")
    wanted = []
    for _ in range(11):
        hosts.hang_up("a:80")
        hosts.start("a:80")
        wanted.append(hosts.wants_more("a:80", 0.0))
    assert wanted == [False] * 9 + [True] * 2
    hosts.take("b:80")
    hosts.start("b:80")
    assert hosts.wants_more("b:80", 0.0), "one that has none waiting always wants more"


def test_failures_in_a_row_open_the_breaker_once() -> None:
    hosts = some_hosts()
    assert failing(hosts, 4, now=100.0) == [None, None, BreakerChange.OPENED, None]
    assert (hosts.tripped, hosts.room_of("a:80", 100.0), hosts.room_of("b:80", 100.0)) == (1, 0, 4)


def test_a_success_in_between_starts_the_count_again() -> None:
    hosts = some_hosts()
    failing(hosts, 2, now=1.0)
    assert hosts.report("a:80", well=True, seconds=0.01, now=1.0) is None
    assert failing(hosts, 2, now=1.0) == [None, None]
    assert hosts.tripped == 0


def test_after_the_pause_one_probe_is_let_through() -> None:
    hosts = some_hosts()
    failing(hosts, 3, now=100.0)
    assert hosts.next_probe_in(101.0) == 4.0
    assert hosts.room_of("a:80", 105.0) == 1
    hosts.take("a:80")
    assert hosts.room_of("a:80", 105.0) == 0, "one probe at a time"


def test_a_failed_probe_makes_the_pause_longer_up_to_its_limit() -> None:
    hosts = some_hosts()
    failing(hosts, 3, now=100.0)
    now, pauses = 105.0, []
    for _ in range(4):
        hosts.report("a:80", well=False, seconds=0.01, now=now)
        pauses.append(hosts.next_probe_in(now))
        now += pauses[-1] or 0.0
    assert pauses == [10.0, 20.0, 20.0, 20.0]


def test_stragglers_of_an_open_breaker_change_nothing() -> None:
    hosts = some_hosts()
    failing(hosts, 3, now=100.0)
    failing(hosts, 5, now=101.0)
    assert hosts.next_probe_in(101.0) == 4.0


def test_a_success_closes_it_and_gives_all_the_room_back() -> None:
    hosts = some_hosts()
    failing(hosts, 3, now=100.0)
    assert hosts.report("a:80", well=True, seconds=5.0, now=105.0) is BreakerChange.CLOSED
    assert (hosts.tripped, hosts.room_of("a:80", 105.0)) == (0, 4)


def test_old_failures_of_a_host_that_nobody_calls_are_forgotten() -> None:
    hosts = some_hosts()
    failing(hosts, 3, now=100.0)
    hosts.report("b:80", well=False, seconds=0.01, now=100.0)
    hosts.forget_idle(now=105.0 + FORGET_AFTER)
    assert hosts.tripped == 1, "its pause ended only just then"
    hosts.forget_idle(now=120.0 + FORGET_AFTER)
    assert (hosts.tripped, hosts.breaker_of("b:80")) == (0, None)
