"""Fires claims: a Firer claims due rows, publishes their events, settles the rows, looks ahead and commits.

A Firer holds the row locks of its claim while the broker confirms the events, so no other process can fire, cancel or
reschedule these rows meanwhile. A crash before the commit rolls back: the rows are due again, and events that the
broker had confirmed are published twice with the same idempotency key. No row changes before its publish is confirmed.

When a Firer knows the next due moment, it claims the rows a little ahead of it (the head start) and publishes them when
Postgres' clock has reached it. The round trips to the database are then over, and only those to the broker are left.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from producer.decisions.claim import Claim
from producer.decisions.settle import next_claim_size
from producer.metrics import LaneMetrics
from producer.priority import MAX_YIELDING_HOLD_SECONDS, Precedence
from producer.work import Prepared, PublishedClaim, Settled, Work
from shared.amqp.message import PublishResult
from shared.amqp.publisher import Publisher
from shared.postgres.pool import ACQUIRE_TIMEOUT, Connection, Pool
from shared.runtime.fault_points import Point, reached
from shared.runtime.loops import LoopYielder
from shared.runtime.wakeup import Wakeup

# A claim loads its rows before their size is known, so the first claim is small. Claims grow while all goes well.
FIRST_CLAIM_ROWS = 100
# Enough for a connection, a transaction and a claim. A cancel that comes within it learns that it came late.
HEAD_START_SECONDS = 0.005
# A Firer holds row locks for no longer than this before it publishes: the clock may have been set back since the moment
# was looked up, and a database under load may have read it late.
MAX_HEAD_START_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class NextMoment:
    """When more rows of a lane come due."""

    at: datetime  # by Postgres' clock
    monotonic_at: float  # by time.monotonic(), or a little earlier


@dataclass(frozen=True, slots=True)
class Idle:
    """The Firer found no row to claim: its lane sleeps until the next moment."""

    next: NextMoment | None  # None: no row of the lane comes due by itself


@dataclass(frozen=True, slots=True)
class TooEarly:
    """The Firer claimed rows ahead of a moment that is further away than it holds locks for. The rows are unlocked and
    unchanged: the lane sleeps until the moment.
    """

    next: NextMoment


@dataclass(frozen=True, slots=True)
class Fired:
    """A claim was published, and its transaction is committed."""

    rows: int
    full: bool  # the claim found as many rows as it asked for, so there may be more
    next: NextMoment | None = field(default=None, compare=False)  # None: do not sleep, claim again at once


@dataclass(frozen=True, slots=True)
class RetryLater:
    """The broker gave no publish result for some events, or a store could not be used: pause before the next claim."""


@dataclass(slots=True)
class _Transaction:
    """The transaction of one claim. It holds the claim's row locks until it ends."""

    connection: Connection
    began: float  # by time.monotonic(), before Postgres read its clock for now()
    clock_read: float  # by time.monotonic(), after Postgres read it
    published: bool = False  # the broker may have the claim's events: without a commit they are published again

    def mark_published(self) -> None:
        self.published = True

    async def wait_until_due(self, claim: Claim[Any]) -> bool:
        """Wait until Postgres' clock has reached the claim's moment and return True. Return False, without waiting, if
        the moment is too far away to hold the row locks until then.
        """
        if claim.seconds_ahead > MAX_HEAD_START_SECONDS:
            return False
        due_at = self.clock_read + claim.seconds_ahead
        # The loop sleeps to the nearest millisecond. What is left after that passes in turns of the loop.
        while (left := due_at - time.monotonic()) > 0:  # noqa: ASYNC110 - a clock sets no event
            await asyncio.sleep(left)
        return True


@dataclass(slots=True, kw_only=True)
class Firer:
    """Fires one lane's claims, one after the other, on a channel of its own. A lane may have several Firers."""

    work: Work[Any, Any]
    pool: Pool
    publisher: Publisher
    precedence: Precedence
    lane_metrics: LaneMetrics
    max_batch: int
    publish_timeout: float
    # Set after a full claim: the lane's other Firers may find more rows.
    helpers_wakeup: Wakeup = field(default_factory=Wakeup)
    # Set when a rule has ended its turn: it waits for the next one in the retry lane.
    retry_lane_wakeup: Wakeup = field(default_factory=Wakeup)
    _claim_rows: int = field(init=False)  # how many rows the next claim asks for

    def __post_init__(self) -> None:
        self._claim_rows = min(FIRST_CLAIM_ROWS, self.max_batch)

    async def fire_once(self, moment: datetime | None = None) -> Fired | Idle | TooEarly | RetryLater:
        """Fire rows that are due now; or rows that are due at a moment that is about to come, and not before it.

        Leaving the transaction unlocks the rows. Rows that were claimed and not published are unchanged.
        """
        await self._yield_to_due_now()
        yields = self.work.yields_to_due_now
        limit = self.precedence.limit_claim(self._claim_rows) if yields else self._claim_rows
        async with self._transaction() as transaction:
            claim = await self._claim(transaction, limit, moment)
            if claim is None:
                return Idle(await self._look_ahead(transaction, moment))
            is_full = claim.found == limit
            with self._precedence_of_lane():
                prepared = await self.work.prepare(claim, self._yielder())
                if not await transaction.wait_until_due(claim):
                    return TooEarly(NextMoment(claim.moment, transaction.began + claim.seconds_ahead))
                if is_full:  # not before the claim's moment: the other Firers would find no row due
                    self.helpers_wakeup.set()
                published = await self._publish(transaction, claim, prepared)
            await self._yield_to_due_now()
            settled = await self.work.settle(transaction.connection, published)
            may_be_more = is_full or prepared.leaves_rows
            next_moment = None if may_be_more else await self._look_ahead_of_claim(transaction, claim, settled)
            reached(Point.PRODUCER_SETTLED)
        self._choose_claim_size(published)
        reached(Point.PRODUCER_COMMITTED)
        # Only after the commit is it true that a rule waits for its turn, and what the report says.
        if settled.wakes_retry_lane:
            self.retry_lane_wakeup.set()
        await self.work.report(published, self._yielder())
        # A channel that is no longer to be trusted is replaced now. With a broker that does not answer this takes
        # seconds. The next publish would do it by itself, but while it holds row locks.
        await self.publisher.recover_channel()
        if PublishResult.UNKNOWN in published.published.results:
            return RetryLater()
        return Fired(prepared.taken, may_be_more, next_moment)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[_Transaction]:
        """Begin a transaction, and commit it when the block ends, or roll it back if the block or the commit fails.
        Either unlocks the rows.

        A claim that was published and not committed will be published again, all of it. So after such a failure the
        next claim is of one row, until a claim is settled.
        """
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            began = time.monotonic()
            transaction = None
            try:
                async with connection.transaction():
                    transaction = _Transaction(connection, began, clock_read=time.monotonic())
                    yield transaction
            except BaseException:
                if transaction and transaction.published:
                    self._claim_rows = 1
                raise
            if transaction.published:
                self.lane_metrics.transaction.observe(time.monotonic() - began)

    async def _claim(self, transaction: _Transaction, limit: int, moment: datetime | None) -> Claim[Any] | None:
        """Claim up to `limit` due rows of the lane, and time the query."""
        with self.lane_metrics.claim.time():
            claim = await self.work.claim(transaction.connection, limit, moment)
        self.lane_metrics.last_poll.set_to_current_time()
        if claim is not None:
            reached(Point.PRODUCER_CLAIMED)
        return claim

    async def _publish(
        self, transaction: _Transaction, claim: Claim[Any], prepared: Prepared
    ) -> PublishedClaim[Prepared]:
        """Publish a claim's messages, and return a publish result for each: UNKNOWN if no answer came in time."""
        await self._yield_to_due_now()
        transaction.mark_published()  # before the publish: one that fails may have sent some of the messages
        with self.lane_metrics.confirm.time():
            published = await self.work.publish(self.publisher, prepared, self.publish_timeout)
        reached(Point.PRODUCER_PUBLISHED)
        published_at = claim.now + timedelta(seconds=time.monotonic() - transaction.began)
        return PublishedClaim(prepared, published, published_at)

    async def _look_ahead(self, transaction: _Transaction, moment: datetime | None) -> NextMoment | None:
        """Find when rows of the lane come due after the moment, or after now. None: no row does by itself."""
        upcoming = await self.work.look_ahead(transaction.connection, moment)
        return NextMoment(upcoming.at, transaction.began + upcoming.in_seconds) if upcoming else None

    async def _look_ahead_of_claim(
        self, transaction: _Transaction, claim: Claim[Any], settled: Settled
    ) -> NextMoment | None:
        """Find when rows come due after this claim. In the claim's own transaction this saves another one while the
        next moment comes near. None: the lane has to claim again at once anyway, because a rule of this claim has
        another occurrence before the claim's moment.
        """
        return None if settled.is_due_again else await self._look_ahead(transaction, claim.moment)

    def _choose_claim_size(self, claim: PublishedClaim[Prepared]) -> None:
        """Choose the size of the next claim after one that was settled. If some rows did not fit into that claim, the
        number that did counts as its size.
        """
        rows = claim.prepared.taken if claim.prepared.leaves_rows else self._claim_rows
        self._claim_rows = next_claim_size(rows, self.max_batch, channel_closed=claim.published.channel_closed)

    def _precedence_of_lane(self) -> AbstractContextManager[None]:
        return nullcontext() if self.work.yields_to_due_now else self.precedence.go_first()

    def _yielder(self) -> LoopYielder:
        if self.work.yields_to_due_now:
            return LoopYielder(MAX_YIELDING_HOLD_SECONDS, self.precedence.wait_for_due_now)
        return LoopYielder()

    async def _yield_to_due_now(self) -> None:
        if self.work.yields_to_due_now:
            await self.precedence.wait_for_due_now()
