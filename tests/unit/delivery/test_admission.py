"""Which events may be ours as soon as they are stored, and that nobody is overtaken by it."""

from collections import Counter

from delivery.admission import MOST_BEHIND, Admission
from delivery.breaker import BreakerPolicy
from delivery.hosts import Hosts

A, B, C = "a:80", "b:80", "c:80"


def an_admission(max_in_flight: int = 10, max_per_host: int = 4) -> Admission:
    return Admission(Hosts(max_in_flight, max_per_host, BreakerPolicy(failures=3)))


def call(hosts: Hosts, host: str, seconds: float, *, well: bool = True) -> None:
    hosts.take(host)
    hosts.start(host)
    hosts.hang_up(host)
    hosts.report(host, well=well, seconds=seconds, now=0.0)
    hosts.write_off()


def test_each_host_gets_its_room_and_all_together_no_more_than_there_are_places() -> None:
    admission = an_admission()
    assert admission.reserve([A, B, A, A, A, A], 0.0) == [True, True, True, True, True, False]
    assert admission.reserve([A, B, B, B, B, C, C, C], 0.0) == [False, True, True, True, False, True, True, False]
    assert admission.hosts.free == 0


def test_what_was_reserved_takes_its_place() -> None:
    admission = an_admission()
    admission.reserve([A, A, B], 0.0)
    assert (admission.hosts.free, admission.hosts.room_of(A, 0.0)) == (7, 2)
    admission.hosts.let_go(A)
    assert (admission.hosts.free, admission.hosts.room_of(A, 0.0)) == (8, 3)


def test_rows_of_a_quick_host_wait_here_and_take_nobodys_place() -> None:
    admission = an_admission(max_in_flight=4, max_per_host=2)
    call(admission.hosts, A, seconds=0.01)
    assert all(admission.reserve([A] * 12, 0.0))
    assert admission.reserve([B, C], 0.0) == [True, True]


def test_a_host_with_rows_in_the_table_gets_none_until_a_look_finds_none_left() -> None:
    admission = an_admission()
    admission.leave_behind([A])
    assert admission.reserve([A, B], 0.0) == [False, True]
    admission.begin_look()
    admission.end_look(behind=[A])
    assert admission.reserve([A], 0.0) == [False]
    admission.begin_look()
    admission.end_look(behind=[])
    assert admission.reserve([A], 0.0) == [True]


def test_what_was_stored_while_somebody_looked_may_not_have_been_seen() -> None:
    admission = an_admission()
    admission.begin_look()
    admission.leave_behind([A])
    admission.end_look(behind=[])
    assert admission.reserve([A], 0.0) == [False]


def test_room_is_waited_for_only_at_a_host_that_will_have_it_in_a_moment() -> None:
    admission = an_admission(max_in_flight=4, max_per_host=2)
    hosts = admission.hosts
    call(hosts, A, seconds=0.01)
    call(hosts, B, seconds=1.0)
    assert not admission.worth_waiting_for(Counter({A: 5, B: 1, C: 1}), 0.0), "it has room now"
    admission.reserve([A] * 20, 0.0)
    admission.reserve([B, B, C, C], 0.0)
    assert admission.worth_waiting_for(Counter({A: 5}), 0.0) == {A}
    assert not admission.worth_waiting_for(Counter({A: 50}), 0.0), "so many take longer"
    assert not admission.worth_waiting_for(Counter({B: 5, C: 5}), 0.0), "slow, or unknown"
    hosts.report(A, well=False, seconds=0.01, now=0.0)
    assert not admission.worth_waiting_for(Counter({A: 5}), 0.0), "failing"


def overbooked(host: str) -> Admission:
    """Quick, and it has as many rows waiting as it may."""
    admission = an_admission(max_in_flight=4, max_per_host=2)
    call(admission.hosts, host, seconds=0.01)
    admission.reserve([host] * 20, 0.0)
    return admission


def test_a_few_rows_of_a_host_without_room_do_not_hold_up_those_of_others() -> None:
    admission = overbooked(A)
    assert admission.worth_waiting_for(Counter({A: 3, C: 2}), 0.0) == {A}
    assert not admission.worth_waiting_for(Counter({A: 3, C: 3}), 0.0)


def test_a_host_that_was_waited_for_in_vain_is_not_waited_for_again_until_its_rows_are_gone() -> None:
    admission = overbooked(A)
    admission.leave_behind([A])
    admission.give_up_on({A})
    assert not admission.worth_waiting_for(Counter({A: 5}), 0.0)
    admission.begin_look()
    admission.end_look(behind=[A])
    assert not admission.worth_waiting_for(Counter({A: 5}), 0.0)
    admission.begin_look()
    admission.end_look(behind=[])
    assert admission.worth_waiting_for(Counter({A: 5}), 0.0) == {A}


def test_only_so_many_hosts_are_remembered_to_have_rows_in_the_table() -> None:
    admission = an_admission()
    admission.leave_behind(f"{number}:80" for number in range(2 * MOST_BEHIND))
    remembered = admission.behind
    assert len(remembered) == MOST_BEHIND
    admission.begin_look()
    admission.leave_behind(remembered)
    admission.end_look(behind=[])
    assert admission.behind == remembered, "those that are known may have more"
    admission.begin_look()
    admission.end_look(f"{number}:80" for number in range(2 * MOST_BEHIND))
    assert len(admission.behind) == MOST_BEHIND
