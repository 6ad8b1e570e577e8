"""The main loop of the delivery service: claim rows into the local queue, call their webhooks, and hand each update to
the recorder.

`LocalQueue` knows the place of each row, and how many rows may be claimed and called. A host that hangs keeps its own
few calls busy and no others. Calls go on while updates are written, unless too many are unwritten. No transaction is
open during a call: a row belongs to this process by its lease alone.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from delivery.attempt.runner import AttemptRunner, FinishedCall
from delivery.dispatch.circuit_breaker import BreakerChange
from delivery.dispatch.claimer import Claimer
from delivery.dispatch.local_queue import LeasedDelivery, LocalQueue
from delivery.metrics import Metrics
from delivery.model import Delivery, DeliveryUpdate, given_back
from delivery.results.recorder import Recorder
from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.runtime.backoff import Backoff
from shared.runtime.fault_points import Point, reached
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, first_of, mark_turn, waiting_outside, watched_apart
from shared.runtime.wakeup import Wakeup

# The loop claims this often, even without a wakeup.
CLAIM_POLL_SECONDS = 0.5
MIN_SLEEP_SECONDS = 0.001
# How many hosts with an open breaker `describe` names: it is written to a table every few seconds.
MAX_DESCRIBED_HOSTS = 100
# After a claim that found only rows of hosts without room, a call that ends leads to the next claim no sooner than
# this. A host that is down may have rows in the table for hours, and each call of each other host would lead to a
# claim.
EMPTY_CLAIM_PAUSE_SECONDS = 0.05
# Calls are cancelled this long before the grace time of the process is over, to give their rows back.
GIVE_BACK_SECONDS = 3.0


@dataclass(slots=True, kw_only=True)
class Dispatcher:
    """Runs the claims and calls of one process."""

    claimer: Claimer
    attempts: AttemptRunner
    recorder: Recorder
    queue: LocalQueue
    metrics: Metrics
    _wakeup: Wakeup = field(default_factory=Wakeup)
    _table_has_more: bool = True  # as far as this process knows, rows are due that the last claim did not take
    _no_claim_before: float = 0.0  # by time.monotonic(); holds for claims after calls that end
    _claim_later: asyncio.TimerHandle | None = None
    # Hosts that want more rows since the claim under way began. None: no claim is under way.
    _wanting: set[str] | None = None
    _calls: set["asyncio.Task[None]"] = field(default_factory=set)
    _call_tasks: asyncio.TaskGroup | None = None  # while `run` runs

    def __post_init__(self) -> None:
        self.metrics.in_flight.set_function(lambda: self.queue.calls)
        self.metrics.open_breakers.set_function(lambda: self.queue.open_breakers)

    async def run(self, stop: Stop, grace: float) -> None:
        """Claim and call until the stop. Then calls may end within the grace time, and other rows are given back."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watched_apart("recorder", self.recorder.run(self._written)), name="recorder")
            try:
                async with asyncio.TaskGroup() as calls:
                    self._call_tasks = calls
                    await self._dispatch_until_stopped(stop)
                    await self._finish(stop.requested_at + grace - GIVE_BACK_SECONDS)
            finally:
                self.recorder.close()

    def rows_stored(self, hosts: Iterable[str]) -> None:
        """Claim soon if there is room for rows of these hosts. If there is none, a call that ends makes room.

        The intake calls this when it has committed new rows.
        """
        self._table_has_more = True
        self._claim_for(hosts)

    def describe(self) -> dict[str, object]:
        """Return the hosts that are not called for now, with the seconds until the next probe."""
        paused = self.queue.seconds_until_probes(time.monotonic(), MAX_DESCRIBED_HOSTS)
        return {"open_breakers": paused} if paused else {}

    async def _dispatch_until_stopped(self, stop: Stop) -> None:
        backoff = Backoff()
        while not stop.requested:
            mark_turn()
            self._wakeup.clear()  # before the claim: a wakeup from here on leads to another claim
            try:
                pause = await self._claim_and_start()
                backoff.reset()
            except RETRYABLE_ERRORS as error:
                get_log().warning("dispatch_waits", error=describe(error))
                await stop.sleep(backoff.next_pause())
                continue
            if pause:
                await first_of(self._wakeup.wait(pause), stop.wait())

    async def _claim_and_start(self) -> float:
        """Claim once and start calls. Return the seconds until the next claim, unless a wakeup comes first."""
        self.queue.forget_idle(time.monotonic())
        self._table_has_more, self._wanting = False, set()
        left_rows = True  # if the claim fails
        try:
            claim = await self.claimer.claim_once()
            left_rows = claim.left_rows
        finally:
            self._table_has_more |= left_rows  # true already if the intake has stored rows during the claim
            wanting, self._wanting = self._wanting, None
        if claim.rows:
            reached(Point.DELIVERY_CLAIMED)
        elif claim.left_rows:
            self._no_claim_before = time.monotonic() + EMPTY_CLAIM_PAUSE_SECONDS
        self._start_calls()
        self._give_back(self.queue.withdraw_uncallable(time.monotonic()))
        self._give_back(self.queue.withdraw_stale(time.monotonic()))
        if self._table_has_more:
            now = time.monotonic()
            if any(self.queue.wants_more(host, now) for host in wanting):
                return 0.0  # the claim began before there was this room, or before these rows were stored
            if claim.rows or not self.queue.free:
                return CLAIM_POLL_SECONDS  # a call that ends wakes the loop
        next_due = await self.claimer.seconds_until_next()
        moments = (CLAIM_POLL_SECONDS, next_due, self.queue.next_probe_in(time.monotonic()))
        return max(MIN_SLEEP_SECONDS, min(moment for moment in moments if moment is not None))

    async def _finish(self, deadline: float) -> None:
        self._give_back(self.queue.withdraw_all())
        if self._calls:
            with waiting_outside():  # until the end of the grace time at most
                await asyncio.wait(self._calls, timeout=max(0.0, deadline - time.monotonic()))
        for call in self._calls:
            call.cancel()

    def _start_calls(self) -> None:
        if self._call_tasks is None:
            return
        for leased in self.queue.start_all(time.monotonic()):
            task = self._call_tasks.create_task(self._call_one_after_another(leased), name="calls")
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)

    async def _call_one_after_another(self, leased: LeasedDelivery | None) -> None:
        """Call rows of one host until none waits here. So one task serves many calls."""
        while leased is not None:
            await self.deliver(leased)
            leased = self.queue.start_next(leased.delivery.host, time.monotonic())
        if self.queue.calls == self.queue.max_calls - 1:  # rows of other hosts may wait for this call to end
            self._start_calls()

    async def deliver(self, leased: LeasedDelivery) -> None:
        """Call one row that is in `calling`. Afterwards the row is unwritten, and the recorder has its update."""
        delivery = leased.delivery
        try:
            result = await self.attempts.run(leased)
        except asyncio.CancelledError:
            self.recorder.submit(given_back(delivery))  # `run` waits until this update is written
            raise
        finally:
            was_full = self.queue.calls == self.queue.max_calls
            self.queue.end_call(delivery.host)
        if result is None:
            self.recorder.submit(given_back(delivery))  # written only if no other process has claimed it meanwhile
        else:
            reached(Point.DELIVERY_CALLED)
            self._report(delivery, result)
            self.recorder.submit(result.update)
        self._claim_after_call(delivery.host, was_full=was_full)

    @property
    def _may_have_more(self) -> bool:
        """Whether the table may have rows to claim. It may while a claim is under way, because only its end tells."""
        return self._table_has_more or self._wanting is not None

    def _claim_after_call(self, host: str, *, was_full: bool) -> None:
        """Claim soon if the end of a call makes room for rows that the last claim left in the table.

        These are rows of the call's host or, if all calls were in use, rows of any host.
        """
        if not self._may_have_more:
            return
        wait = self._no_claim_before - time.monotonic()
        if was_full:
            self._wakeup.set()
        elif wait <= 0 or self._wanting is not None:
            self._claim_for([host])
        elif self._claim_later is None and self.queue.wants_more(host, time.monotonic()):
            self._claim_later = asyncio.get_running_loop().call_later(wait, self._claim_now)

    def _claim_now(self) -> None:
        self._claim_later = None
        self._wakeup.set()

    def _claim_for(self, hosts: Iterable[str]) -> None:
        """Claim soon if one of the hosts wants more rows. A claim that is under way may bring them, so the decision
        then waits for its end.
        """
        now = time.monotonic()
        wanting = [host for host in hosts if self.queue.wants_more(host, now)]
        if self._wanting is not None:
            self._wanting.update(wanting)
        elif wanting:
            self._wakeup.set()

    def _give_back(self, withdrawn: Iterable[Delivery]) -> None:
        """Make rows due again at once, for every replica. There was no call, and no attempt is spent."""
        for delivery in withdrawn:
            self.recorder.submit(given_back(delivery))

    def _written(self, updates: Sequence[DeliveryUpdate]) -> None:
        """Continue after the recorder has written a batch: calls and claims may have waited for it."""
        was_full = not self.queue.free
        self.queue.note_written(len(updates))
        if any(update.pause is not None and update.pause.total_seconds() < CLAIM_POLL_SECONDS for update in updates):
            self._wakeup.set()  # due again before the next poll
        if was_full:
            self._start_calls()
            if self._may_have_more:
                self._wakeup.set()

    def _report(self, delivery: Delivery, result: FinishedCall) -> None:
        """Tell the local queue what a call says about its host."""
        healthy = result.host_is_healthy
        if healthy is None:
            return
        change = self.queue.report(delivery.host, healthy=healthy, seconds=result.seconds, now=time.monotonic())
        if change is None:
            return
        self.metrics.breaker_changes.labels(change.value).inc()
        breaker = self.queue.breaker_of(delivery.host)
        get_log().warning(
            f"breaker_{change.value}",
            host=delivery.host,
            failures=breaker.failures if breaker else 0,
            pause_seconds=breaker.pause if breaker else 0,
            idempotency_key=delivery.idempotency_key,
        )
        if change is BreakerChange.OPENED:
            self._give_back(self.queue.withdraw_host(delivery.host))
        else:
            self._wakeup.set()
