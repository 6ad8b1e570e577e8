"""One claim, fired: claim, publish, settle, look ahead, commit. The heart of the producer.

The row locks are held while the broker confirms, so no other process can fire, cancel or reschedule these rows
meanwhile. A crash before the commit rolls back: the rows are due again, and what was already confirmed is published
twice with the same idempotency key. No row changes before its publish is confirmed.

When the next due moment is known, its rows are claimed a little ahead of it, and published when Postgres' clock has
reached it: the round trips to the database are then over, and what is left is the broker's.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from producer.decisions.due_event import PreparedClaim, prepare
from producer.decisions.plan import Claim
from producer.decisions.settle import END_OF_TURN, JobUpdate, attribute, next_claim_size, settle_all
from producer.metrics import LaneMetrics, Metrics
from producer.priority import SHORT_HOLD, Precedence
from producer.reporting import FiredClaim, report
from producer.store.lanes import Lane, claim_due, look_ahead
from shared.amqp.message import PublishResult
from shared.amqp.publisher import Publisher
from shared.contract.names import Names
from shared.postgres.pool import ACQUIRE_TIMEOUT, Connection, Pool
from shared.runtime.fault_points import Point, reached
from shared.runtime.loops import LoopYielder
from shared.runtime.wakeup import Wakeup

# A claim has its rows in memory before it knows how large they are, so the first is small; they grow if all goes well.
FIRST_CLAIM_ROWS = 100
# Enough for a connection, a transaction and a claim. A cancel that comes within it learns that it came late.
HEAD_START = 0.005
# Row locks are not held for a clock that was set back meanwhile, or was read late by a database under load.
MAX_HEAD_START_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class NextMoment:
    """When more rows of the lane come due."""

    at: datetime  # by Postgres' clock
    monotonic_at: float  # by time.monotonic(), or a little earlier


@dataclass(frozen=True, slots=True)
class Idle:
    """There was nothing to claim: sleep until the next moment."""

    next: NextMoment | None  # None: nothing comes due by itself


@dataclass(frozen=True, slots=True)
class TooEarly:
    """The rows of a moment to come were claimed, and it is further away than locks are held for. They are unlocked
    again, unchanged: sleep until the moment.
    """

    next: NextMoment


@dataclass(frozen=True, slots=True)
class Fired:
    """A claim was published, and its transaction is committed."""

    jobs: int
    full: bool  # as many as were asked for: there may well be more
    next: NextMoment | None = field(default=None, compare=False)  # None: do not sleep, look again at once


@dataclass(frozen=True, slots=True)
class Stuck:
    """The broker gave no verdict on some of it: wait before trying again."""


@dataclass(slots=True)
class _Transaction:
    """The transaction of one claim: it holds the claim's row locks until it ends."""

    connection: Connection
    began: float  # by time.monotonic(): no later than Postgres read its clock for now()
    clock_read: float  # and no earlier
    published: bool = False  # the broker may have the claim's messages: what is not committed is published again

    def mark_published(self) -> None:
        self.published = True

    async def wait_until_due(self, claim: Claim) -> bool:
        """True when Postgres' clock has reached the claim's moment; False, at once, if it is too far away for locks."""
        if claim.ahead > MAX_HEAD_START_SECONDS:
            return False
        # The loop sleeps to the nearest millisecond; what is left after it passes in turns of the loop.
        while (left := self.clock_read + claim.ahead - time.monotonic()) > 0:  # noqa: ASYNC110 - a clock sets no event
            await asyncio.sleep(left)
        return True


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
    help_wanted: Wakeup = field(default_factory=Wakeup)  # rung when there may be more than one claim's worth of work
    turn_ended: Wakeup = field(
        default_factory=Wakeup
    )  # rung when a rule waits for its next turn, in the lane for those
    _claim_rows: int = field(init=False)  # how many rows the next claim asks for

    def __post_init__(self) -> None:
        self._claim_rows = min(FIRST_CLAIM_ROWS, self.max_batch)

    async def fire_once(self, moment: datetime | None = None) -> Fired | Idle | TooEarly | Stuck:
        """Fire what is due now; or what is due at a moment that is about to come, and not before it has come.

        Leaving the transaction unlocks the rows. Those that were claimed and not published are as they were.
        """
        await self._stand_aside()
        limit = self.precedence.shortened(self._claim_rows) if self.lane.patient else self._claim_rows
        async with self._transaction() as transaction:
            claim = await self._claim(transaction, limit, moment)
            if claim is None:
                return Idle(await self._look_ahead(transaction, moment))
            is_full = len(claim.jobs) == limit
            with self._going_first():
                prepared = await prepare(claim, self.names, self._yielder())
                if not await transaction.wait_until_due(claim):
                    return TooEarly(NextMoment(claim.moment, transaction.began + claim.ahead))
                if is_full:  # not before its moment: a helper would find nothing due
                    self.help_wanted.set()
                fired = await self._publish(transaction, prepared)
            updates = await self._settle(transaction, fired)
            may_be_more = is_full or prepared.leaves_jobs
            next_moment = None if may_be_more else await self._look_beyond(transaction, claim, updates)
            reached(Point.PRODUCER_SETTLED)
        self._choose_claim_size(prepared, fired)
        reached(Point.PRODUCER_COMMITTED)
        await self._tell(fired, updates)
        await self._recover_channel()
        if PublishResult.UNKNOWN in fired.verdicts:
            return Stuck()
        return Fired(len(fired.firings), may_be_more, next_moment)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[_Transaction]:
        """Begin a transaction, and commit it, which unlocks its rows; or roll it back if something fails.

        A claim that was published and is not committed will be published again, all of it. So after such a failure the
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
        with self.lane_metrics.claim.time():
            claim = await claim_due(transaction.connection, self.lane, limit, moment)
        self.lane_metrics.last_poll.set_to_current_time()
        if claim is not None:
            reached(Point.PRODUCER_CLAIMED)
        return claim

    async def _publish(self, transaction: _Transaction, prepared: PreparedClaim) -> FiredClaim:
        """After it returns there is a verdict on each message; what the broker did not answer in time is UNKNOWN."""
        await self._stand_aside()
        transaction.mark_published()  # before: a publish that fails may have sent some of it
        with self.lane_metrics.confirm.time():
            verdicts = await self.publisher.publish(prepared.messages, self.publish_timeout)
        reached(Point.PRODUCER_PUBLISHED)
        return FiredClaim(
            lane=self.lane,
            firings=prepared.firings,
            verdicts=attribute(verdicts, len(prepared.firings)),
            channel_closed=PublishResult.CLOSED in verdicts,
            published_at=prepared.claim.now + timedelta(seconds=time.monotonic() - transaction.clock_read),
        )

    async def _settle(self, transaction: _Transaction, fired: FiredClaim) -> list[JobUpdate]:
        """After the commit: what was confirmed is behind its row, and the rest is due again, now or after a pause."""
        await self._stand_aside()
        updates = settle_all(fired.firings, fired.verdicts)
        await self.lane.settle(transaction.connection, updates)
        return updates

    async def _look_ahead(self, transaction: _Transaction, moment: datetime | None) -> NextMoment | None:
        """What comes due after the moment, or after now; None if nothing does by itself."""
        upcoming = await look_ahead(transaction.connection, self.lane, moment)
        return NextMoment(upcoming.at, transaction.began + upcoming.in_seconds) if upcoming else None

    async def _look_beyond(
        self, transaction: _Transaction, claim: Claim, updates: Sequence[JobUpdate]
    ) -> NextMoment | None:
        """What comes due after this claim. That saves the next look, which would be a transaction of its own while the
        next moment comes near. None if it is needed all the same: some rule of this claim is not past its moment yet.
        """
        if any(update.next is not None and update.next.at <= claim.moment for update in updates):
            return None
        return await self._look_ahead(transaction, claim.moment)

    def _choose_claim_size(self, prepared: PreparedClaim, fired: FiredClaim) -> None:
        """After a claim that was settled. Where jobs did not fit into it, no more than fitted are a claim's worth."""
        rows = len(prepared.firings) if prepared.leaves_jobs else self._claim_rows
        self._claim_rows = next_claim_size(rows, self.max_batch, channel_closed=fired.channel_closed)

    async def _tell(self, fired: FiredClaim, updates: Sequence[JobUpdate]) -> None:
        """Wake the lane of rules that wait for their turn, and report the claim. Called after its commit: only then is
        it true.
        """
        if any(update.pause == END_OF_TURN for update in updates):
            self.turn_ended.set()
        await report(self.metrics, fired, self._yielder())

    async def _recover_channel(self) -> None:
        """Replace a channel that is no longer to be trusted. With a broker that does not answer this takes seconds. The
        next publish would do it by itself, but while it holds row locks; here none is held.
        """
        await self.publisher.recover_channel()

    def _going_first(self) -> AbstractContextManager[None]:
        return nullcontext() if self.lane.patient else self.precedence.taken()

    def _yielder(self) -> LoopYielder:
        return LoopYielder(SHORT_HOLD, self.precedence.stand_aside) if self.lane.patient else LoopYielder()

    async def _stand_aside(self) -> None:
        if self.lane.patient:
            await self.precedence.stand_aside()
