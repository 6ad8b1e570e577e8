"""Fires claims: a Firer claims due rows, publishes their events, settles the rows, looks ahead and commits.

A Firer holds the row locks of its claim while the broker confirms the events, so no other process can fire, cancel or
reschedule these rows meanwhile. A crash before the commit rolls back: the rows are due again, and events that the
broker had confirmed are published twice with the same idempotency key. No row changes before its publish is confirmed.

When a Firer knows the next due moment, it claims the rows a little ahead of it (the head start) and publishes them when
Postgres' clock has reached it. The round trips to the database are then over, and only those to the broker are left.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from producer.decisions.due_event import PreparedClaim, prepare, unrouted_copy
from producer.decisions.history import tell_firings
from producer.decisions.plan import Claim
from producer.decisions.settle import END_OF_TURN, JobUpdate, attribute, next_claim_size, settle_all
from producer.metrics import LaneMetrics, Metrics
from producer.priority import MAX_YIELDING_HOLD_SECONDS, Precedence
from producer.reporting import FiredClaim, ReportedLines, report
from producer.store.lanes import Lane, claim_due, look_ahead
from shared.amqp.message import OutgoingMessage, PublishResult
from shared.amqp.publisher import Publisher
from shared.contract.history import HistoryLevel
from shared.contract.names import Names
from shared.postgres.history import add_entries
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

    jobs: int
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

    async def wait_until_due(self, claim: Claim) -> bool:
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

    lane: Lane
    pool: Pool
    publisher: Publisher
    names: Names
    precedence: Precedence
    metrics: Metrics
    lane_metrics: LaneMetrics
    max_batch: int
    publish_timeout: float
    history: HistoryLevel = HistoryLevel.ALL
    lines: ReportedLines = field(default_factory=ReportedLines)
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
        yields = self.lane.yields_to_due_now
        limit = self.precedence.limit_claim(self._claim_rows) if yields else self._claim_rows
        async with self._transaction() as transaction:
            claim = await self._claim(transaction, limit, moment)
            if claim is None:
                return Idle(await self._look_ahead(transaction, moment))
            is_full = len(claim.jobs) == limit
            with self._precedence_of_lane():
                prepared = await prepare(claim, self.names, self._yielder())
                if not await transaction.wait_until_due(claim):
                    return TooEarly(NextMoment(claim.moment, transaction.began + claim.seconds_ahead))
                if is_full:  # not before the claim's moment: the other Firers would find no row due
                    self.helpers_wakeup.set()
                fired = await self._publish(transaction, prepared)
            updates = await self._settle(transaction, fired)
            may_be_more = is_full or prepared.leaves_jobs
            next_moment = None if may_be_more else await self._look_ahead_of_claim(transaction, claim, updates)
            reached(Point.PRODUCER_SETTLED)
        self._choose_claim_size(prepared, fired)
        reached(Point.PRODUCER_COMMITTED)
        # Only after the commit is it true that a rule waits for its turn, and what the report says.
        if any(update.pause == END_OF_TURN for update in updates):
            self.retry_lane_wakeup.set()
        await report(self.metrics, self.lines, fired, self._yielder())
        # A channel that is no longer to be trusted is replaced now. With a broker that does not answer this takes
        # seconds. The next publish would do it by itself, but while it holds row locks.
        await self.publisher.recover_channel()
        if PublishResult.UNKNOWN in fired.results:
            return RetryLater()
        return Fired(len(fired.firings), may_be_more, next_moment)

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

    async def _claim(self, transaction: _Transaction, limit: int, moment: datetime | None) -> Claim | None:
        """Claim up to `limit` due rows of the lane, and time the query."""
        with self.lane_metrics.claim.time():
            claim = await claim_due(transaction.connection, self.lane, limit, moment)
        self.lane_metrics.last_poll.set_to_current_time()
        if claim is not None:
            reached(Point.PRODUCER_CLAIMED)
        return claim

    async def _publish(self, transaction: _Transaction, prepared: PreparedClaim) -> FiredClaim:
        """Publish a claim's events, and return a publish result for each: UNKNOWN if no answer came in time."""
        await self._yield_to_due_now()
        transaction.mark_published()  # before the publish: one that fails may have sent some of the events
        with self.lane_metrics.confirm.time():
            results = await self.publisher.publish(prepared.messages, self.publish_timeout)
            results = await self._keep_unrouted(prepared.messages, results)
        reached(Point.PRODUCER_PUBLISHED)
        return FiredClaim(
            lane=self.lane,
            firings=prepared.firings,
            results=attribute(results, len(prepared.firings)),
            channel_closed=PublishResult.CLOSED in results,
            published_at=prepared.claim.now + timedelta(seconds=time.monotonic() - transaction.clock_read),
        )

    async def _keep_unrouted(
        self, messages: Sequence[OutgoingMessage], results: list[PublishResult]
    ) -> list[PublishResult]:
        """Publish copies of the events that no queue is bound for to `scheduler.unrouted`. An event whose copy is not
        confirmed has the copy's result: its job is fired again.
        """
        unrouted = [place for place, result in enumerate(results) if result is PublishResult.UNROUTED]
        if unrouted:
            copies = [unrouted_copy(messages[place], self.names) for place in unrouted]
            for place, result in zip(unrouted, await self.publisher.publish(copies, self.publish_timeout), strict=True):
                if result is not PublishResult.CONFIRMED:
                    results[place] = result
        return results

    async def _settle(self, transaction: _Transaction, fired: FiredClaim) -> list[JobUpdate]:
        """After the commit: each row is past its confirmed occurrences; a row with others is due again, now or after a
        pause.
        """
        await self._yield_to_due_now()
        updates = settle_all(fired.firings, fired.results)
        await self.lane.settle(transaction.connection, updates)
        if self.history is not HistoryLevel.OFF:
            told = tell_firings(fired.firings, fired.results, fired.published_at)
            await add_entries(transaction.connection, told, self.history)
        return updates

    async def _look_ahead(self, transaction: _Transaction, moment: datetime | None) -> NextMoment | None:
        """Find when rows of the lane come due after the moment, or after now. None: no row does by itself."""
        upcoming = await look_ahead(transaction.connection, self.lane, moment)
        return NextMoment(upcoming.at, transaction.began + upcoming.in_seconds) if upcoming else None

    async def _look_ahead_of_claim(
        self, transaction: _Transaction, claim: Claim, updates: Sequence[JobUpdate]
    ) -> NextMoment | None:
        """Find when rows come due after this claim. In the claim's own transaction this saves another one while the
        next moment comes near. None: the lane has to claim again at once anyway, because a rule of this claim has
        another occurrence before the claim's moment.
        """
        if any(update.next is not None and update.next.at <= claim.moment for update in updates):
            return None
        return await self._look_ahead(transaction, claim.moment)

    def _choose_claim_size(self, prepared: PreparedClaim, fired: FiredClaim) -> None:
        """Choose the size of the next claim after one that was settled. If some jobs did not fit into that claim, the
        number that did counts as its size.
        """
        rows = len(prepared.firings) if prepared.leaves_jobs else self._claim_rows
        self._claim_rows = next_claim_size(rows, self.max_batch, channel_closed=fired.channel_closed)

    def _precedence_of_lane(self) -> AbstractContextManager[None]:
        return nullcontext() if self.lane.yields_to_due_now else self.precedence.go_first()

    def _yielder(self) -> LoopYielder:
        if self.lane.yields_to_due_now:
            return LoopYielder(MAX_YIELDING_HOLD_SECONDS, self.precedence.wait_for_due_now)
        return LoopYielder()

    async def _yield_to_due_now(self) -> None:
        if self.lane.yields_to_due_now:
            await self.precedence.wait_for_due_now()
