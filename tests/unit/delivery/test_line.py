"""Rows that wait for their call."""

from delivery.line import Held, Line
from tests.support.builders import a_delivery

A, B = "a:80", "b:80"


def held(host: str, number: int, since: float = 0.0, ready_at: float = 0.0) -> Held:
    return Held(a_delivery(id=number, host=host), since, ready_at)


def a_line(*waiting: Held) -> Line:
    line = Line()
    for each in waiting:
        line.put(each)
    return line


def ids(waiting: list[Held]) -> list[int]:
    return [each.delivery.id for each in waiting]


def test_the_oldest_of_a_host_is_next() -> None:
    line = a_line(held(A, 1), held(B, 2), held(A, 3))
    assert [line.next_of(A), line.next_of(A), line.next_of(A)] == [held(A, 1), held(A, 3), None]
    assert line.hosts() == [B]


def test_waiting_begins_when_a_row_is_here_however_long_the_database_took_to_hand_it_over() -> None:
    line = a_line(held(A, 1, since=0.0, ready_at=5.0), held(A, 2, since=4.0, ready_at=9.0), held(B, 3, ready_at=5.0))
    assert ids(line.take_ready_before(3.0)) == []
    assert ids(line.take_ready_before(6.0)) == [1, 3]
    assert ids(line.take_all()) == [2]
