"""One batch of ScheduleDue, from messages to acknowledgement: read, store in one transaction, hand to the dispatcher
what there is room for, park what could not be understood, and acknowledge all with one `multiple` ack. Nothing is
acknowledged before its commit, and no call is waited for: a slow receiver never holds up the queue.
"""

import time
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from itertools import compress
from operator import not_

import msgspec

from delivery.dispatching import Dispatcher
from delivery.due_events import NewDelivery, Unreadable, read_due
from delivery.line import Held
from delivery.metrics import Metrics
from delivery.model import Delivery
from delivery.store_new import insert_new, release_uncalled
from shared.batches import together_or_one_by_one
from shared.database import ABOUT_THE_ROW, PASSING_TROUBLE, Connection, Pool
from shared.fault_points import Point, reached
from shared.inbox import Inbox
from shared.logs import get_log
from shared.parking import park, parked_copy
from shared.publishing import Publisher
from shared.received import Received
from shared.tracing import read_traceparent, trace_headers

ACQUIRE_TIMEOUT = 10.0
FIRST_VERSION = 1
# Those of a few batches; what is beyond waits until its lease is over.
MOST_IN_DOUBT = 1000


class Stored(msgspec.Struct, frozen=True, gc=False):
    idempotency_key: str
    is_new: bool


Result = Stored | Unreadable


def _read(message: Received) -> NewDelivery | Unreadable:
    try:
        return read_due(message)
    except Exception as error:  # noqa: BLE001 - the boundary of one message: it must not take its batch down
        get_log().error("event_unreadable", error=type(error).__name__)
        return Unreadable((f"body: cannot be read: {type(error).__name__}",))


@dataclass(frozen=True, slots=True, kw_only=True)
class DueHandler:
    pool: Pool
    publisher: Publisher
    parking: str  # the exchange
    metrics: Metrics
    dispatcher: Dispatcher
    lease_margin: float
    publish_timeout: float
    _in_doubt: set[str] = field(default_factory=set)  # keys of leases that we asked for and were not told about

    async def store(self, messages: list[Received]) -> list[Result]:
        """After it returns, every event that could be understood is committed. It can be repeated."""
        reached(Point.DELIVERY_RECEIVED)
        return await together_or_one_by_one(
            [_read(message) for message in messages],
            self._store_together,
            lambda _, error: Unreadable((f"body: the database refused it: {error}",)),
            self.metrics.split_batches.inc,
        )

    async def settle(self, messages: list[Received], results: list[Result], inbox: Inbox) -> None:
        """After it returns, what could not be understood is parked, and all are acknowledged."""
        reached(Point.DELIVERY_STORED)
        copies = [
            parked_copy(message, exchange=self.parking, errors=result.errors, parked_by="delivery")
            for message, result in zip(messages, results, strict=True)
            if isinstance(result, Unreadable)
        ]
        await park(self.publisher, copies, self.publish_timeout)
        await inbox.acknowledge(messages)
        reached(Point.DELIVERY_ACKNOWLEDGED)
        self._observe(messages, results)

    async def _store_together(self, events: Sequence[NewDelivery | Unreadable]) -> list[Result]:
        # The first of each key; the insert sees to those that came in other batches.
        unique: dict[str, NewDelivery] = {}
        for event in events:
            if isinstance(event, NewDelivery):
                unique.setdefault(event.idempotency_key, event)
        inserted = await self._insert(list(unique.values())) if unique else set()
        return [
            event
            if isinstance(event, Unreadable)
            else Stored(
                event.idempotency_key,
                is_new=event.idempotency_key in inserted and unique[event.idempotency_key] is event,
            )
            for event in events
        ]

    async def _insert(self, new: Sequence[NewDelivery]) -> Set[str]:
        """The keys that were not there before. What there is room for is stored as ours, and its call begins."""
        hosts = [delivery.host for delivery in new]
        await self.dispatcher.make_room(hosts)
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            since, granted = time.monotonic(), self.dispatcher.reserve(hosts)
            ours: list[Held] = []
            try:
                inserted = await insert_new(connection, new, granted, self.lease_margin)
                ready_at = time.monotonic()
                ours = [
                    Held(_as_claimed(delivery, row_id, inserted.at), since, ready_at)
                    for delivery, is_ours in zip(new, granted, strict=True)
                    if is_ours and (row_id := inserted.ids.get(delivery.idempotency_key)) is not None
                ]
            except ABOUT_THE_ROW:
                raise  # nothing was stored
            except PASSING_TROUBLE:
                self._doubt(delivery.idempotency_key for delivery in compress(new, granted))
                raise
            finally:
                self.dispatcher.accept(ours, compress(hosts, granted))
            if not all(granted):
                self.dispatcher.leave_behind(compress(hosts, map(not_, granted)))
            if self._in_doubt:
                await self._release(connection, {delivery.idempotency_key for delivery in new}, inserted.ids.keys())
        return inserted.ids.keys()

    def _doubt(self, keys: Iterable[str]) -> None:
        """They may be stored all the same, each with a lease of ours; and nobody calls them, for nobody was told."""
        if len(self._in_doubt) < MOST_IN_DOUBT:
            self._in_doubt.update(keys)

    async def _release(self, connection: Connection, stored: Set[str], new: Set[str]) -> None:
        """Of those that are stored now, what was stored before, when we were not told: due at once."""
        released = await release_uncalled(connection, self._in_doubt & stored - new)
        self._in_doubt.difference_update(stored)
        if released:
            get_log().info("released_in_doubt", deliveries=len(released))
            self.dispatcher.leave_behind(released)

    def _observe(self, messages: Sequence[Received], results: Sequence[Result]) -> None:
        for message, result in zip(messages, results, strict=True):
            if isinstance(result, Unreadable):
                self.metrics.parked.inc()
                get_log().warning("event_parked", errors=list(result.errors), **_trace(message))
            elif result.is_new:
                self.metrics.stored.inc()
            else:
                self.metrics.duplicates.inc()
                get_log().info("duplicate_dropped", idempotency_key=result.idempotency_key, **_trace(message))


def _as_claimed(new: NewDelivery, row_id: int, stored_at: datetime) -> Delivery:
    """What a claim would give of a row that was stored with our lease."""
    return Delivery(
        row_id,
        FIRST_VERSION,
        new.job_id,
        new.idempotency_key,
        new.topic,
        new.sequence,
        new.due_at,
        new.fired_at,
        stored_at,
        stored_at,
        new.payload,
        new.url,
        new.host,
        new.headers,
        new.timeout_seconds,
        new.max_retries,
        0,
        new.secret,
        new.traceparent,
        new.trigger_id,
    )


def _trace(message: Received) -> dict[str, str]:
    return trace_headers(read_traceparent(message.headers))
