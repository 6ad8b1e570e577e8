"""One claim, fired: claim, publish, settle, commit. The heart of the producer.

The row locks are held while the broker confirms, so nobody else can fire, cancel or reschedule these rows meanwhile. A
crash before the commit rolls back: the rows are due again, and what was already confirmed is published twice with the
same idempotency key. No row changes before its publish is confirmed.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from producer.events import due_event
from producer.metrics import LaneMetrics, Metrics
from producer.planning import DueJob, Plan, plan
from producer.reporting import report
from producer.settling import Shot, settle_all
from producer.store import Claim, Lane, claim_due, seconds_until_next
from shared.breath import Breath
from shared.database import Pool
from shared.fault_points import Point, reached
from shared.logs import get_log
from shared.names import Names
from shared.outgoing import Outgoing, Verdict
from shared.publishing import Publisher
from shared.recurrence import BadRule
from shared.tracing import trace_headers

ACQUIRE_TIMEOUT = 10.0
# One claim's worth: as much as a broker confirms well within the timeout, and as fits into memory several times over.
MAX_MESSAGES = 1000
# A claim has its rows in memory before it knows how large they are, so the first is small; they grow if all goes well.
FIRST_BATCH = 100
MAX_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Fired:
    jobs: int
    full: bool  # as many as were asked for: there may well be more


@dataclass(frozen=True, slots=True)
class Idle:
    next_in_seconds: float | None


@dataclass(frozen=True, slots=True)
class Stuck:
    """The broker gave no verdict on some of it: wait before trying again."""


@dataclass(slots=True, kw_only=True)
class Firer:
    """Fires one lane's claims, one after the other, with a channel of its own. Several may work on one lane."""

    lane: Lane
    pool: Pool
    publisher: Publisher
    names: Names
    metrics: Metrics
    lane_metrics: LaneMetrics
    max_batch: int
    publish_timeout: float
    _batch: int = field(init=False)

    def __post_init__(self) -> None:
        self._batch = min(FIRST_BATCH, self.max_batch)

    async def fire_once(self, now: datetime | None = None) -> Fired | Idle | Stuck:
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            began = time.monotonic()
            async with connection.transaction():
                with self.lane_metrics.claim.time():
                    claim = await claim_due(connection, self.lane, self._batch, now)
                self.lane_metrics.last_poll.set_to_current_time()
                if claim is None:
                    return Idle(await seconds_until_next(connection, self.lane))
                reached(Point.PRODUCER_CLAIMED)
                full = len(claim.jobs) == self._batch
                shots, messages = await self._aim(claim)
                with self.lane_metrics.confirm.time():
                    verdicts = self._blame(shots, await self.publisher.publish(messages, self.publish_timeout))
                reached(Point.PRODUCER_PUBLISHED)
                published_at = claim.now + timedelta(seconds=time.monotonic() - began)
                await self.lane.settle(connection, settle_all(shots, verdicts))
                reached(Point.PRODUCER_SETTLED)
            self.lane_metrics.transaction.observe(time.monotonic() - began)
        reached(Point.PRODUCER_COMMITTED)
        await report(self.metrics, self.lane, shots, verdicts, published_at)  # committed: only now is it true
        await self.publisher.mend()
        return Stuck() if Verdict.UNKNOWN in verdicts else Fired(len(shots), full or len(shots) < len(claim.jobs))

    async def _aim(self, claim: Claim) -> tuple[list[Shot], list[Outgoing]]:
        """What the claim comes to. Jobs beyond the bounds are left as they are: still due, for the next claim."""
        shots: list[Shot] = []
        messages: list[Outgoing] = []
        size, breath = 0, Breath()
        for job in claim.jobs:
            if len(messages) >= MAX_MESSAGES or size >= MAX_BYTES:
                self._batch = len(shots)  # and claim no more than this for now
                break
            first = len(messages)
            planned = self._plan(job, claim.now, breath)
            if planned is not None:
                messages += (
                    due_event(job, occurrence, job.sequence + number, claim.now, self.names)
                    for number, occurrence in enumerate(planned.ringing, start=1)
                )
            size += sum(len(message.body) for message in messages[first:])
            shots.append(Shot(job, planned, slice(first, len(messages))))
            await breath.take()
        return shots, messages

    def _plan(self, job: DueJob, now: datetime, breath: Breath) -> Plan | None:
        try:
            return plan(job, now, enough=lambda: breath.is_due)
        except Exception as error:  # noqa: BLE001 - the boundary of one job: it waits alone, and the others ring
            reason = str(error) if isinstance(error, BadRule) else type(error).__name__
            get_log().error("rule_unreadable", id=job.id, error=reason, **trace_headers(job.traceparent))
            return None

    def _blame(self, shots: Sequence[Shot], verdicts: list[Verdict]) -> list[Verdict]:
        """A channel that the broker closed says that a message is at fault, not which. So the next claims are of one
        row each, where it is plain, and grow again while all goes well.
        """
        if Verdict.CLOSED not in verdicts:
            self._batch = min(self.max_batch, 2 * self._batch)
            return verdicts
        self._batch = 1
        if len(shots) == 1:
            return verdicts
        return [Verdict.UNKNOWN if verdict is Verdict.CLOSED else verdict for verdict in verdicts]
