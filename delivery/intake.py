"""Handles one batch of ScheduleDue: reads the messages, stores new deliveries in one transaction, wakes the dispatcher,
parks the messages that cannot be read, and acknowledges all with one `multiple` ack. No message is acknowledged before
its delivery is committed. The intake waits for no call, so a slow receiver never delays the queue.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import assert_never

import msgspec

from delivery.events import NewDelivery, Replay, Unreadable, read_message
from delivery.metrics import Metrics
from delivery.store.new import insert_new
from delivery.store.replay import replay
from shared.amqp.consuming import Inbox
from shared.amqp.message import IncomingMessage
from shared.amqp.parking import make_parked_copy, park
from shared.amqp.publisher import Publisher
from shared.contract.fields import read_traceparent, trace_headers
from shared.postgres.pool import ACQUIRE_TIMEOUT, Pool, store_together_or_one_by_one
from shared.runtime.fault_points import Point, reached
from shared.runtime.logs import get_log


class Stored(msgspec.Struct, frozen=True, gc=False):
    """The event's delivery is committed. `is_new` is false if it was stored before."""

    idempotency_key: str
    is_new: bool


class Replayed(msgspec.Struct, frozen=True, gc=False):
    """So many failed deliveries have a replay that had none."""

    deliveries: int


Result = Stored | Replayed | Unreadable


def _read(message: IncomingMessage) -> NewDelivery | Replay | Unreadable:
    try:
        return read_message(message)
    except Exception as error:  # noqa: BLE001 - the boundary of one message: its batch must not fail
        get_log().error("event_unreadable", error=type(error).__name__)
        return Unreadable((f"body: cannot be read: {type(error).__name__}",))


@dataclass(frozen=True, slots=True, kw_only=True)
class DueHandler:
    """Stores the due events of one batch, and then parks and acknowledges its messages."""

    pool: Pool
    publisher: Publisher
    parking: str  # the exchange
    metrics: Metrics
    on_stored: Callable[[Iterable[str]], None]  # wakes the dispatcher: rows of these hosts are committed
    publish_timeout: float

    async def store(self, messages: list[IncomingMessage]) -> list[Result]:
        """Store the deliveries of a batch. The call can be repeated.

        After the commit: each event that could be read has its delivery, and each replay that was asked for is there.
        """
        reached(Point.DELIVERY_RECEIVED)
        return await store_together_or_one_by_one(
            [_read(message) for message in messages],
            self._store_together,
            lambda _, error: Unreadable((f"body: the database refused it: {error}",)),
            self.metrics.split_batches.inc,
        )

    async def finish(self, messages: list[IncomingMessage], results: list[Result], inbox: Inbox) -> None:
        """Park the messages that could not be read, and then acknowledge the whole batch."""
        reached(Point.DELIVERY_STORED)
        copies = [
            make_parked_copy(message, exchange=self.parking, errors=result.errors, parked_by="delivery")
            for message, result in zip(messages, results, strict=True)
            if isinstance(result, Unreadable)
        ]
        if copies:
            await park(self.publisher, copies, self.publish_timeout)
        await inbox.acknowledge(messages)
        reached(Point.DELIVERY_ACKNOWLEDGED)
        self._observe(messages, results)

    async def _store_together(self, events: Sequence[NewDelivery | Replay | Unreadable]) -> list[Result]:
        # The first event of each key in this batch. The insert leaves out keys that other batches have stored.
        unique: dict[str, NewDelivery] = {}
        for event in events:
            if isinstance(event, NewDelivery):
                unique.setdefault(event.idempotency_key, event)
        inserted = await self._insert(list(unique.values())) if unique else set()
        results: list[Result] = []
        for event in events:
            match event:
                case Unreadable():
                    results.append(event)
                case Replay():
                    results.append(await self._replay(event))
                case NewDelivery(idempotency_key=key):
                    results.append(Stored(key, is_new=key in inserted and unique[key] is event))
                case _:
                    assert_never(event)
        return results

    async def _replay(self, asked: Replay) -> Replayed:
        """Store the replays. A message that comes again finds them there."""
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            replays = await replay(connection, asked.delivery_ids, asked.operator, asked.by_user)
        return Replayed(len(replays))

    async def _insert(self, new: Sequence[NewDelivery]) -> Set[str]:
        """Store deliveries and wake the dispatcher. Return the keys that were not stored before."""
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            inserted = await insert_new(connection, new)
        self.on_stored({delivery.host for delivery in new})
        return inserted

    def _observe(self, messages: Sequence[IncomingMessage], results: Sequence[Result]) -> None:
        self.metrics.stored.inc(sum(isinstance(result, Stored) and result.is_new for result in results))
        for message, result in zip(messages, results, strict=True):
            if isinstance(result, Unreadable):
                self.metrics.parked.inc()
                get_log().warning("event_parked", errors=list(result.errors), **_trace(message))
            elif isinstance(result, Replayed):
                get_log().info("deliveries_replayed", deliveries=result.deliveries)
            elif not result.is_new:
                self.metrics.duplicates.inc()
                get_log().info("duplicate_dropped", idempotency_key=result.idempotency_key, **_trace(message))


def _trace(message: IncomingMessage) -> dict[str, str]:
    return trace_headers(read_traceparent(message.headers))
