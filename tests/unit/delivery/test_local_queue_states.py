"""Any order of moves: every row is in exactly one place, no limit is passed, and everything returns to empty."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from delivery.dispatch.circuit_breaker import BreakerPolicy
from delivery.dispatch.local_queue import (
    MAX_UNWRITTEN_PER_CALL,
    MAX_WAITING_PER_CALL,
    Counts,
    LeasedDelivery,
    LocalQueue,
    Reservation,
)
from delivery.model import Delivery
from tests.support.builders import a_delivery

HOSTS = ("a:80", "b:80", "c:80")
hosts = st.sampled_from(HOSTS)
seconds = st.sampled_from((0.002, 0.002, 0.05, 0.6, 3.0))


class QueueMachine(RuleBasedStateMachine):
    """Beside the queue, the place of each row by its id."""

    @initialize(max_calls=st.integers(1, 4), per_host=st.integers(1, 3), failures=st.integers(1, 3))
    def begin(self, max_calls: int, per_host: int, failures: int) -> None:
        self.queue = LocalQueue(max_calls, per_host, BreakerPolicy(failures, first_pause=1.0, longest_pause=4.0))
        self.now = 0.0
        self.next_id = 0
        self.place: dict[int, str] = {}
        self.host: dict[int, str] = {}

    @rule(later=seconds)
    def time_passes(self, later: float) -> None:
        self.now += later
        self.queue.forget_idle(self.now)

    @rule(wanted=st.permutations(HOSTS), rows=st.sampled_from((1, 50)), fails=st.sampled_from((False, False, True)))
    def claim(self, wanted: list[str], rows: int, fails: bool) -> None:
        """A claim takes no more than the room it is given, and asks for room twice, as the claimer does."""
        with self.queue.reservation(self.now) as reservation:
            self._add(reservation, [wanted[0]] * rows)
            self._add(reservation, [host for host in wanted for _ in range(rows)])
            if not fails:
                reservation.commit(self.now)
        for delivery in reservation.rows:
            if fails:
                del self.place[delivery.id]
            else:
                self._move(delivery.id, "reserved", "waiting")

    def _add(self, reservation: Reservation, wanted: Sequence[str]) -> None:
        room = self.queue.room(self.now)
        assert 0 <= room.total <= self.queue.max_calls
        left = Counter({host: room.exceptions.get(host, room.per_host) for host in HOSTS})
        found: list[Delivery] = []
        for host in wanted:
            if left[host] > 0 and len(found) < room.total:
                left[host] -= 1
                found.append(a_delivery(id=self.next_id, host=host))
                self.place[self.next_id], self.host[self.next_id] = "reserved", host
                self.next_id += 1
        reservation.add(found)
        assert self.queue.counts().reserved == len(reservation.rows)

    @rule(host=hosts)
    def start_one(self, host: str) -> None:
        self._started([leased] if (leased := self.queue.start_next(host, self.now)) else [])

    @rule()
    def start_all(self) -> None:
        self._started(self.queue.start_all(self.now))
        assert all(self.queue.start_next(host, self.now) is None for host in HOSTS), "none that may begin is left"

    def _started(self, started: Sequence[LeasedDelivery]) -> None:
        unwritten = self.queue.counts().unwritten
        assert not started or unwritten < MAX_UNWRITTEN_PER_CALL * self.queue.max_calls
        for leased in started:
            row, host = leased.delivery.id, leased.delivery.host
            assert row == min(r for r, place in self.place.items() if place == "waiting" and self.host[r] == host)
            assert leased.leased_at <= leased.ready_at <= self.now
            self._move(row, "waiting", "calling")

    @precondition(lambda self: "calling" in self.place.values())
    @rule(number=st.integers(1, 4), healthy=st.sampled_from((True, True, True, False, None)), took=seconds)
    def end_calls(self, number: int, healthy: bool | None, took: float) -> None:
        for row in [row for row, place in self.place.items() if place == "calling"][:number]:
            self.queue.end_call(self.host[row])
            self._move(row, "calling", "unwritten")
            if healthy is not None:
                self.queue.report(self.host[row], healthy=healthy, seconds=took, now=self.now)

    @rule()
    def withdraw_stale(self) -> None:
        self._withdrawn(self.queue.withdraw_stale(self.now))

    @rule(host=hosts)
    def withdraw_host(self, host: str) -> None:
        self._withdrawn(self.queue.withdraw_host(host))

    @rule(share=st.floats(0.0, 1.0))
    def write(self, share: float) -> None:
        unwritten = [row for row, place in self.place.items() if place == "unwritten"]
        written = unwritten[: round(share * len(unwritten))]
        self.queue.note_written(len(written))
        for row in written:
            del self.place[row]

    def _withdrawn(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            self._move(delivery.id, "waiting", "unwritten")

    def _move(self, row: int, source: str, target: str) -> None:
        assert self.place[row] == source
        self.place[row] = target

    @invariant()
    def every_row_is_counted_in_its_one_place(self) -> None:
        places = Counter(self.place.values())
        assert self.queue.counts() == tuple(places[place] for place in Counts._fields)

    @invariant()
    def no_limit_is_passed(self) -> None:
        queue = self.queue
        calling = Counter(self.host[row] for row, place in self.place.items() if place == "calling")
        slow = Counter(self.host[row] for row, place in self.place.items() if place == "waiting")
        slow_calls = sum(
            min(rows, max(0, queue.max_calls_per_host - calling[host]))
            for host, rows in slow.items()
            if queue.breaker_of(host)  # whatever it was before, it may have no rows ahead now
        )
        assert queue.calls <= queue.max_calls
        assert all(calls <= queue.max_calls_per_host for calls in calling.values())
        assert 0 <= queue.free <= max(0, queue.max_calls - queue.calls - slow_calls)
        assert all(queue.room_of(host, self.now) >= 0 for host in HOSTS)
        counts = queue.counts()
        # When the limit is all but reached, one statement may pass it with rows that wait for a fast host, and further
        # statements with rows whose calls can begin at once. Each of the two kinds is limited by the calls in all.
        assert counts.reserved + counts.waiting < (MAX_WAITING_PER_CALL + 2) * queue.max_calls

    def teardown(self) -> None:
        if not hasattr(self, "queue"):
            return  # hypothesis ended before the first step
        self._withdrawn(self.queue.withdraw_all())
        for row, place in list(self.place.items()):
            if place == "calling":
                self.queue.end_call(self.host[row])
                self._move(row, "calling", "unwritten")
        self.queue.note_written(len(self.place))
        assert self.queue.counts() == Counts(0, 0, 0, 0)
        assert self.queue.free == self.queue.max_calls
        assert set(self.queue.room(self.now).exceptions) <= {
            host for host in HOSTS if (breaker := self.queue.breaker_of(host)) and breaker.is_tripped
        }


QueueMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestAnyOrderOfMoves = QueueMachine.TestCase
