"""Claims what is due and has room, calls, and hands the outcome to the recorder. The heart of the delivery service.

A row is claimed only when there is a slot for it, in all and at its host. The host's is free again when the call is
over, the one in all when the outcome is written. So a host that hangs keeps its own few slots and nothing else, no call
waits while outcomes are written, and memory follows the slots, not the backlog.
No transaction is open while somebody is called: the row is ours by its lease alone.
"""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from delivery.addresses import AddressRules
from delivery.calling import Caller
from delivery.hosts import BreakerChange, Hosts
from delivery.metrics import Metrics
from delivery.outcomes import (
    Attempt,
    CallError,
    CallResult,
    RetryPolicy,
    Unanswered,
    decide,
    host_is_well,
    result_label,
)
from delivery.recorded import Recorded, given_back, recorded
from delivery.recording import Recorder
from delivery.request import Delivery, prepare
from delivery.signing import Secrets
from delivery.store import Room, claim_oldest, claim_round, seconds_until_next
from shared.backoff import Backoff
from shared.bell import Bell
from shared.database import PASSING_TROUBLE, Connection, Pool, describe
from shared.fault_points import Point, reached
from shared.lifecycle import Stop, first_of
from shared.logs import get_log
from shared.pulse import beat, resting, with_a_pulse_of_its_own
from shared.tracing import trace_headers

ACQUIRE_TIMEOUT = 10.0
# However little is heard, somebody looks this often.
POLL_SECONDS = 0.5
SHORTEST_SLEEP = 0.001
# How many of the oldest a claim looks at before it goes host by host.
LOOK_AT = 1000
# Before the process's own grace time is over: to give back what was not finished.
TIME_TO_GIVE_BACK = 3.0


@dataclass(slots=True, kw_only=True)
class Dispatcher:
    pool: Pool
    caller: Caller
    recorder: Recorder
    hosts: Hosts
    secrets: Secrets
    rules: AddressRules
    retry_policy: RetryPolicy
    metrics: Metrics
    bell: Bell
    lease_margin: float
    chance: Callable[[], float] = random.random
    _after_host: str = ""
    _claiming: bool = False
    _calls: set["asyncio.Task[None]"] = field(default_factory=set)

    async def run(self, stop: Stop, grace: float) -> None:
        """Until the stop comes; then what is in flight may finish within the grace time, and the rest is given back."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(with_a_pulse_of_its_own("recorder", self.recorder.run()), name="recorder")
            try:
                async with asyncio.TaskGroup() as calls:
                    await self._dispatch_until_stopped(calls, stop)
                    if self._calls:
                        with resting():  # the end of the grace time is the end of it
                            await asyncio.wait(self._calls, timeout=max(0.0, grace - TIME_TO_GIVE_BACK))
                    for call in self._calls:
                        call.cancel()
            finally:
                self.recorder.close()

    async def _dispatch_until_stopped(self, calls: asyncio.TaskGroup, stop: Stop) -> None:
        backoff = Backoff()
        while not stop.requested:
            beat()
            self.bell.silence()  # before looking: what rings from here on is looked at again
            try:
                claimed_at = time.monotonic()
                self._claiming = True
                claimed = await self.claim_once()
                self._claiming = False
                if claimed:
                    reached(Point.DELIVERY_CLAIMED)
                for delivery in claimed:
                    task = calls.create_task(self._deliver(delivery, claimed_at), name="call")
                    self._calls.add(task)
                    task.add_done_callback(self._calls.discard)
                # Without a free slot there is nothing to wake for but a slot.
                pause = await self._time_to_sleep() if self.hosts.free else POLL_SECONDS
                backoff.reset()
            except PASSING_TROUBLE as error:
                get_log().warning("dispatch_waits", error=describe(error))
                await stop.sleep(backoff.next_pause())
                continue
            await first_of(self.bell.wait(pause), stop.wait())

    async def claim_once(self, now: datetime | None = None) -> list[Delivery]:
        """At most as many as there are free slots, each with its slot taken. The oldest first; if those are of hosts
        without room, then host by host, beginning where the last round stopped.
        """
        self.hosts.forget_idle(time.monotonic())
        if not self.hosts.free:
            return []
        claimed: list[Delivery] = []
        try:
            async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
                found, more = await claim_oldest(connection, self._room(), self.lease_margin, LOOK_AT, now)
                self._take(found, claimed)
                if more and self.hosts.free:
                    await self._claim_round(connection, claimed, now)
        except BaseException:
            # Rolled back, or nobody knows: either way nobody will be called for them, and their slots are free.
            for delivery in claimed:
                self.hosts.release(delivery.host)
            raise
        self._show()
        return claimed

    async def _claim_round(self, connection: Connection, claimed: list[Delivery], now: datetime | None) -> None:
        last_host = ""
        for after_host in {self._after_host: None, "": None}:
            if self.hosts.free:
                found = await claim_round(connection, self._room(), self.lease_margin, after_host, now)
                self._take(found, claimed)
                last_host = max((delivery.host for delivery in found), default=last_host)
        self._after_host = "" if self.hosts.free else last_host

    def _room(self) -> Room:
        return Room(self.hosts.free, self.hosts.max_per_host, self.hosts.exceptions(time.monotonic()))

    def _take(self, found: list[Delivery], claimed: list[Delivery]) -> None:
        for delivery in found:
            self.hosts.take(delivery.host)
            claimed.append(delivery)

    async def _time_to_sleep(self) -> float:
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            next_due = await seconds_until_next(connection)
        moments = (POLL_SECONDS, next_due, self.hosts.next_probe_in(time.monotonic()))
        return max(SHORTEST_SLEEP, min(moment for moment in moments if moment is not None))

    async def _deliver(self, delivery: Delivery, claimed: float) -> None:
        try:
            try:
                row = await self._attempt(delivery, claimed)
            finally:
                # Somebody may have found no room because of this one; a claim under way has counted its room already.
                if self._claiming or not self.hosts.room_of(delivery.host, time.monotonic()):
                    self.bell.ring()
                self.hosts.hang_up(delivery.host)
            if row is not None:
                await asyncio.shield(self.recorder.submit(row))
                if row.pause is not None and row.pause.total_seconds() < POLL_SECONDS:
                    self.bell.ring()
        finally:
            if self._claiming or not self.hosts.free:
                self.bell.ring()
            self.hosts.write_off()
            self._show()

    async def _attempt(self, delivery: Delivery, claimed: float) -> Recorded | None:
        """What is to be written about it; None if its lease is no longer ours to use."""
        started = time.monotonic()
        if started - claimed > self.lease_margin:
            # The process stood still for so long that the lease may end during the call: somebody else's turn.
            self.metrics.leases_lost.inc()
            get_log().warning(
                "lease_lost",
                idempotency_key=delivery.idempotency_key,
                id=delivery.job_id,
                dropped="before the call",
                **trace_headers(delivery.traceparent),
            )
            return None
        started_at = delivery.claimed_at + timedelta(seconds=started - claimed)
        try:
            result = await self._call(delivery, started_at)
        except asyncio.CancelledError:
            self.recorder.submit(given_back(delivery))  # `run` waits until it is written
            raise
        reached(Point.DELIVERY_CALLED)
        ended = time.monotonic()
        self._report(delivery, result, ended)
        attempt = Attempt(
            delivery.retry_count, delivery.max_retries, started_at + timedelta(seconds=ended - started), self.chance()
        )
        outcome = decide(result, attempt, self.retry_policy)
        self.metrics.attempts(result_label(result)).inc()
        self.metrics.seconds.observe(ended - started)
        return recorded(delivery, result, outcome, started_at, timedelta(seconds=ended - started))

    async def _call(self, delivery: Delivery, now: datetime) -> CallResult:
        try:
            signers = self.secrets.signers(delivery.secret) if delivery.secret is not None else ()
            request = prepare(delivery, signers, self.rules, now)
            return request if isinstance(request, Unanswered) else await self.caller.call(request)
        except Exception as error:  # noqa: BLE001 - the boundary of one attempt: it spends a try, and harms nobody else
            get_log().error(
                "call_failed_unexpectedly",
                idempotency_key=delivery.idempotency_key,
                error_type=type(error).__name__,
            )
            return Unanswered(CallError.UNEXPECTED)

    def _report(self, delivery: Delivery, result: CallResult, now: float) -> None:
        well = host_is_well(result)
        if well is None:
            return
        change = self.hosts.report(delivery.host, well=well, now=now)
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
        if change is BreakerChange.CLOSED:
            self.bell.ring()

    def _show(self) -> None:
        self.metrics.in_flight.set(self.hosts.in_flight)
        self.metrics.open_breakers.set(self.hosts.tripped)
