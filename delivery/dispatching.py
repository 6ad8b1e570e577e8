"""Has what was claimed called, and hands the outcome to the recorder. The heart of the delivery service. What has room
as soon as it is stored is handed over by the intake, and need not be claimed.

A row is claimed only when there is a place for it, in all and at its host, which is free again when the call is over.
So a host that hangs keeps its own few places and nothing else, no call waits while outcomes are written (unless too
many are to be), and memory follows the places, not the backlog.
No transaction is open while somebody is called: the row is ours by its lease alone.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from delivery.admission import Admission
from delivery.attempting import Attempted, Attempter
from delivery.claiming import Claimer
from delivery.hosts import BreakerChange, Hosts
from delivery.line import Held, Line
from delivery.metrics import Metrics
from delivery.model import Delivery
from delivery.recorded import Recorded, given_back
from delivery.recording import Recorder
from shared.backoff import Backoff
from shared.bell import Bell
from shared.database import PASSING_TROUBLE, describe
from shared.fault_points import Point, reached
from shared.lifecycle import Stop, first_of
from shared.logs import get_log
from shared.pulse import beat, resting, with_a_pulse_of_its_own

# However little is heard, somebody looks this often.
POLL_SECONDS = 0.5
SHORTEST_SLEEP = 0.001
# What waits here for longer is given back: somebody else, or a later claim, may get to it sooner.
LONGEST_WAIT = 2.0
# How long the intake waits for hosts that will have room for its batch soon, and how often it looks.
LONGEST_WAIT_FOR_ROOM = 0.1
LOOK_FOR_ROOM_EVERY = 0.002
# Before the process's own grace time is over: to give back what was not finished.
TIME_TO_GIVE_BACK = 3.0


@dataclass(slots=True, kw_only=True)
class Dispatcher:
    claimer: Claimer
    attempter: Attempter
    recorder: Recorder
    hosts: Hosts
    admission: Admission
    metrics: Metrics
    bell: Bell
    _being_stored: int = 0  # batches in which places are reserved
    _stopping: bool = False
    _line: Line = field(default_factory=Line)
    _claiming: bool = False
    _made_room: set[str] = field(default_factory=set)  # while a claim was under way
    _calls: set["asyncio.Task[None]"] = field(default_factory=set)
    _call_tasks: asyncio.TaskGroup | None = None  # while it runs

    def __post_init__(self) -> None:
        self.metrics.in_flight.set_function(lambda: self.hosts.in_flight)
        self.metrics.open_breakers.set_function(lambda: self.hosts.tripped)

    async def run(self, stop: Stop, grace: float) -> None:
        """Until the stop comes; then what is in flight may finish within the grace time, and the rest is given back."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(with_a_pulse_of_its_own("recorder", self.recorder.run(self._written)), name="recorder")
            try:
                async with asyncio.TaskGroup() as calls:
                    self._call_tasks = calls
                    await self._dispatch_until_stopped(stop)
                    await self._finish(stop.requested_at + grace - TIME_TO_GIVE_BACK)
            finally:
                self.recorder.close()

    async def _finish(self, deadline: float) -> None:
        self._stopping = True
        self._give_back(self._line.take_all())
        with resting():  # the end of the grace time is the end of it
            # What is just being stored as ours is given back, too.
            while self._being_stored and time.monotonic() < deadline:  # noqa: ASYNC110 - for milliseconds, once
                await asyncio.sleep(LOOK_FOR_ROOM_EVERY)
            if self._calls:
                await asyncio.wait(self._calls, timeout=max(0.0, deadline - time.monotonic()))
        for call in self._calls:
            call.cancel()

    async def make_room(self, hosts: Iterable[str]) -> None:
        """Waits for those that are so quick that they will have room for all of it in a moment. It is spent well: rows
        that are stored as ours cost less than rows that have to be claimed.
        """
        wanted, deadline = Counter(hosts), time.monotonic() + LONGEST_WAIT_FOR_ROOM
        while awaited := self.admission.worth_waiting_for(wanted, time.monotonic()):
            if self._stopping:
                return
            if time.monotonic() > deadline:
                self.admission.give_up_on(awaited)
                return
            await asyncio.sleep(LOOK_FOR_ROOM_EVERY)

    def reserve(self, hosts: Sequence[str]) -> list[bool]:
        """Which of these, about to be stored, are to be ours. To be followed by `accept`, whatever happens."""
        self._being_stored += 1
        return [False] * len(hosts) if self._stopping else self.admission.reserve(hosts, time.monotonic())

    def accept(self, ours: Sequence[Held], reserved: Iterable[str]) -> None:
        """What was stored, of all that places were reserved for."""
        self._being_stored -= 1
        for host, unused in (Counter(reserved) - Counter(held.delivery.host for held in ours)).items():
            for _ in range(unused):
                self.hosts.let_go(host)
        if self._stopping:
            self._give_back(ours)
            return
        if ours:
            reached(Point.DELIVERY_CLAIMED)
        for held in ours:
            self._line.put(held)
        self._start_what_may()

    def leave_behind(self, hosts: Iterable[str]) -> None:
        """Rows of theirs were stored for whoever claims them."""
        self.admission.leave_behind(hosts)
        self.claimer.left_behind = True
        self.bell.ring()

    async def _dispatch_until_stopped(self, stop: Stop) -> None:
        backoff = Backoff()
        while not stop.requested:
            beat()
            self.bell.silence()  # before looking: what rings from here on is looked at again
            try:
                claimed = await self._claim()
                self._start_what_may()
                self._give_back_what_waits_too_long()
                pause = await self._time_to_sleep(claimed=claimed)
                backoff.reset()
            except PASSING_TROUBLE as error:
                get_log().warning("dispatch_waits", error=describe(error))
                await stop.sleep(backoff.next_pause())
                continue
            if pause:
                await first_of(self.bell.wait(pause), stop.wait())

    async def _claim(self) -> bool:
        """Whether there was something to claim."""
        claimed_at, self._claiming = time.monotonic(), True
        self._made_room.clear()
        try:
            claimed = await self.claimer.claim_once()
        finally:
            self._claiming = False
        if claimed:
            reached(Point.DELIVERY_CLAIMED)
        ready_at = time.monotonic()
        for delivery in claimed:
            self._line.put(Held(delivery, claimed_at, ready_at))
        return bool(claimed)

    async def _time_to_sleep(self, *, claimed: bool) -> float:
        """0: there is more to claim, and room for it was made while the last claim was under way."""
        if self.claimer.left_behind:
            now = time.monotonic()
            if any(self.hosts.wants_more(host, now) for host in self._made_room):
                return 0.0
            if claimed or not self.hosts.free:
                return POLL_SECONDS  # whoever makes room rings
        next_due = await self.claimer.seconds_until_next()
        moments = (POLL_SECONDS, next_due, self.hosts.next_probe_in(time.monotonic()))
        return max(SHORTEST_SLEEP, min(moment for moment in moments if moment is not None))

    def _start_what_may(self) -> None:
        if self._call_tasks is None:
            return
        now = time.monotonic()
        for host in self._line.hosts():
            if not self.hosts.has_a_place:
                return
            while self.hosts.may_start(host, now) and (held := self._line.next_of(host)):
                self.hosts.start(host)
                task = self._call_tasks.create_task(self._call_one_after_another(held), name="calls")
                self._calls.add(task)
                task.add_done_callback(self._calls.discard)

    async def _call_one_after_another(self, held: Held | None) -> None:
        """For as long as the host has rows waiting here: a task serves many calls."""
        while held is not None:
            host = held.delivery.host
            await self.deliver(held)
            held = self._line.next_of(host) if self.hosts.may_start(host, time.monotonic()) else None
            if held is not None:
                self.hosts.start(host)
        if self.hosts.in_flight == self.hosts.max_in_flight - 1:  # rows of other hosts may wait for this place
            self._start_what_may()

    async def deliver(self, held: Held) -> None:
        """After it, the outcome is the recorder's business."""
        delivery = held.delivery
        try:
            attempted = await self.attempter.attempt(held)
        except asyncio.CancelledError:
            self.recorder.submit(given_back(delivery))  # `run` waits until it is written
            raise
        finally:
            self.hosts.hang_up(delivery.host)
        if attempted is None:
            self.recorder.submit(given_back(delivery))  # written only if nobody else has it yet
        else:
            reached(Point.DELIVERY_CALLED)
            self._report(delivery, attempted)
            self.recorder.submit(attempted.record)
        # Somebody may have found no room because of this one.
        if self.claimer.left_behind and self.hosts.wants_more(delivery.host, time.monotonic()):
            if self._claiming:
                self._made_room.add(delivery.host)
            else:
                self.bell.ring()

    def _give_back_what_waits_too_long(self) -> None:
        waited = self._line.take_ready_before(time.monotonic() - LONGEST_WAIT)
        for host in {held.delivery.host for held in waited}:
            self.hosts.notice_slowness(host)  # or they would be claimed again at once
        self._give_back(waited)

    def _give_back(self, waiting: Iterable[Held]) -> None:
        """Due again at once, for whoever has room: no call, and no attempt spent."""
        for held in waiting:
            self.hosts.pass_over(held.delivery.host)
            self.recorder.submit(given_back(held.delivery))

    def _written(self, results: Sequence[Recorded]) -> None:
        were_full = not self.hosts.free
        for result in results:
            self.hosts.write_off()
            if result.pause is not None and result.pause.total_seconds() < POLL_SECONDS:
                self.bell.ring()
        if were_full:
            self._start_what_may()
            if self.claimer.left_behind:
                self.bell.ring()

    def _report(self, delivery: Delivery, attempted: Attempted) -> None:
        well = attempted.host_is_well
        if well is None:
            return
        change = self.hosts.report(delivery.host, well=well, seconds=attempted.seconds, now=time.monotonic())
        if change is None:
            return
        self.metrics.breaker_changes.labels(change.value).inc()
        breaker = self.hosts.breaker_of(delivery.host)
        get_log().warning(
            f"breaker_{change.value}",
            host=delivery.host,
            failures=breaker.failures if breaker else 0,
            pause_seconds=breaker.pause if breaker else 0,
            idempotency_key=delivery.idempotency_key,
        )
        if change is BreakerChange.OPENED:
            self._give_back(self._line.take_host(delivery.host))
        else:
            self.bell.ring()
