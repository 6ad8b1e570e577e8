"""One claim, fired: claim, publish, settle, commit. The heart of the producer.

The row locks are held while the broker confirms, so nobody else can fire, cancel or reschedule these rows meanwhile. A
crash before the commit rolls back: the rows are due again, and what was already confirmed is published twice with the
same idempotency key. No row changes before its publish is confirmed.

When the next due moment is known, its rows are claimed a little ahead of it, and published when Postgres' clock has
reached it: the round trips to the database are then over, and what is left is the broker's.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from producer.events import due_event
from producer.metrics import LaneMetrics, Metrics
from producer.planning import DueJob, Plan, plan
from producer.precedence import SHORT_HOLD, Precedence
from producer.reporting import Volley, report
from producer.settling import END_OF_TURN, Settled, Shot, settle_all
from producer.store import Claim, Lane, Upcoming, claim_due, look_ahead
from shared.bell import Bell
from shared.breath import LONGEST_HOLD_SECONDS, Breath
from shared.database import Connection, Pool
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
# Enough for a connection, a transaction and a claim. A cancel that comes within it learns that it came late.
HEAD_START = 0.005
# Row locks are not held for a clock that was set back meanwhile, or was read late by a database under load.
LONGEST_HEAD_START = 0.1


@dataclass(frozen=True, slots=True)
class Idle:
    upcoming: Upcoming | None
    since: float  # when the transaction that looked began, by time.monotonic()


@dataclass(frozen=True, slots=True)
class Fired:
    jobs: int
    full: bool  # as many as were asked for: there may well be more
    then: Idle | None = field(default=None, compare=False)  # what comes next, if nothing is left to do at once


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
    precedence: Precedence
    metrics: Metrics
    lane_metrics: LaneMetrics
    max_batch: int
    publish_timeout: float
    help_wanted: Bell = field(default_factory=Bell)  # rung when there may be more than one claim's worth of work
    turn_ended: Bell = field(default_factory=Bell)  # rung when a rule waits for its next turn, in the lane for those
    _batch: int = field(init=False)

    def __post_init__(self) -> None:
        self._batch = min(FIRST_BATCH, self.max_batch)

    async def fire_once(self, moment: datetime | None = None) -> Fired | Idle | Stuck:
        """What is due now; or at a moment that is about to come, and not before it has."""
        await self._stand_aside()
        limit = self.precedence.shortened(self._batch) if self.lane.patient else self._batch
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            began = time.monotonic()
            async with connection.transaction():
                clock_read = time.monotonic()  # no earlier than Postgres read its own, for this transaction's now()
                with self.lane_metrics.claim.time():
                    claim = await claim_due(connection, self.lane, limit, moment)
                self.lane_metrics.last_poll.set_to_current_time()
                if claim is None:
                    return Idle(await look_ahead(connection, self.lane, moment), began)
                reached(Point.PRODUCER_CLAIMED)
                with self._going_first():
                    shots, messages = await self._aim(claim)
                    if not await _has_come(claim, clock_read):
                        return Idle(Upcoming(claim.moment, claim.ahead), clock_read)
                    if len(claim.jobs) == limit:  # not before its moment: whoever came would find nothing due
                        self.help_wanted.ring()
                    verdicts = await self._publish(shots, messages)
                # Should it not be settled, all of it is published again. So that is not to be more than one, until
                # something is settled.
                batch, self._batch = self._batch, 1
                reached(Point.PRODUCER_PUBLISHED)
                published_at = claim.now + timedelta(seconds=time.monotonic() - clock_read)
                await self._stand_aside()
                settled = settle_all(shots, verdicts)
                await self.lane.settle(connection, settled)
                full = len(claim.jobs) == limit or len(shots) < len(claim.jobs)
                then = None if full else await self._look_beyond(connection, claim, settled)
                reached(Point.PRODUCER_SETTLED)
            self.lane_metrics.transaction.observe(time.monotonic() - began)
        self._batch = batch
        reached(Point.PRODUCER_COMMITTED)
        if any(row.pause == END_OF_TURN for row in settled):
            self.turn_ended.ring()
        # Committed: only now is it true.
        await report(self.metrics, Volley(self.lane, shots, verdicts, published_at), self._breath())
        await self.publisher.mend()
        if Verdict.UNKNOWN in verdicts:
            return Stuck()
        return Fired(len(shots), full, Idle(then, began) if then else None)

    async def _look_beyond(self, connection: Connection, claim: Claim, settled: Sequence[Settled]) -> Upcoming | None:
        """Saves the next look, which would be a transaction of its own while the next moment comes near. None if it is
        needed all the same: some rule of this claim is not past its moment yet.
        """
        if any(row.next is not None and row.next.at <= claim.moment for row in settled):
            return None
        return await look_ahead(connection, self.lane, claim.moment)

    def _going_first(self) -> AbstractContextManager[None]:
        return nullcontext() if self.lane.patient else self.precedence.taken()

    def _breath(self) -> Breath:
        return Breath(SHORT_HOLD, self.precedence.stand_aside) if self.lane.patient else Breath()

    async def _stand_aside(self) -> None:
        if self.lane.patient:
            await self.precedence.stand_aside()

    async def _publish(self, shots: Sequence[Shot], messages: Sequence[Outgoing]) -> list[Verdict]:
        await self._stand_aside()
        with self.lane_metrics.confirm.time():
            return self._blame(shots, await self.publisher.publish(messages, self.publish_timeout))

    async def _aim(self, claim: Claim) -> tuple[list[Shot], list[Outgoing]]:
        """What the claim comes to. Jobs beyond the bounds are left as they are: still due, for the next claim."""
        shots: list[Shot] = []
        messages: list[Outgoing] = []
        size, breath = 0, self._breath()
        for job in claim.jobs:
            if len(messages) >= MAX_MESSAGES or size >= MAX_BYTES:
                self._batch = len(shots)  # and claim no more than this for now
                break
            first = len(messages)
            planned = self._plan(job, claim.fires_at, breath)
            for number, occurrence in enumerate(planned.ringing if planned else (), start=job.sequence + 1):
                message = due_event(job, occurrence, number, claim.fires_at, self.names)
                size += len(message.body)
                messages.append(message)
            shots.append(Shot(job, planned, slice(first, len(messages))))
            if breath.is_due:
                await breath.take()
        return shots, messages

    def _plan(self, job: DueJob, now: datetime, breath: Breath) -> Plan | None:
        try:
            planned = plan(job, now, enough=lambda: breath.held > LONGEST_HOLD_SECONDS)
        except Exception as error:  # noqa: BLE001 - the boundary of one job: it waits alone, and the others ring
            reason = str(error) if isinstance(error, BadRule) else type(error).__name__
            get_log().error("rule_unreadable", id=job.id, error=reason, **trace_headers(job.traceparent))
            return None
        if planned.cut_short:
            get_log().warning("rule_cut_short", id=job.id, **trace_headers(job.traceparent))
        return planned

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


async def _has_come(claim: Claim, clock_read: float) -> bool:
    """Waits until Postgres' clock has reached the claim's moment; not for one that is far away."""
    if claim.ahead > LONGEST_HEAD_START:
        return False
    # The loop sleeps to the nearest millisecond; what is left after it passes in turns of the loop.
    while (left := clock_read + claim.ahead - time.monotonic()) > 0:  # noqa: ASYNC110 - a clock sets no event
        await asyncio.sleep(left)
    return True
