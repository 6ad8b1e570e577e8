"""Handles one batch of delayed messages: stores them in one transaction, parks those that cannot be held, and
acknowledges all with one `multiple` ack. No message is acknowledged before its commit.

A message whose own `expiration` ended before a consumer took it comes by a second queue, with the marks of RabbitMQ's
dead-lettering. They are undone first: the expiration counts from the moment when the message is due. A sender may have
written such marks itself, so its target has to be open, as that of a message that names its target in its body.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from consumer.commands.delayed import DelayedMessage, RefusedDelayed, read_delayed, undo_expiry, undo_redelivery
from consumer.commands.delayed_history import tell_stored
from consumer.commands.masstransit import MassTransitMessage
from consumer.masstransit import CarriedOut, MassTransit, Read
from consumer.metrics import Metrics
from consumer.store.delayed import StoredDelayed, find_open, register_exchanges, store_messages
from shared.amqp.consuming import Inbox
from shared.amqp.message import IncomingMessage
from shared.amqp.parking import make_parked_copy, park
from shared.amqp.publisher import Publisher
from shared.contract.delayed import exchange_label
from shared.contract.history import HistoryLevel
from shared.contract.names import Names
from shared.postgres.history import add_entries
from shared.postgres.pool import ACQUIRE_TIMEOUT, Connection, Pool, store_together_or_one_by_one
from shared.runtime.fault_points import Point, reached
from shared.runtime.logs import get_log
from shared.runtime.loops import LoopYielder


class Held(msgspec.Struct, frozen=True, gc=False):
    """A message that is stored. `replaced`: an earlier one with its name is not."""

    replaced: bool


Result = Held | CarriedOut | RefusedDelayed

ANOTHER_OWNER = "user_id: the message that waits under this duebell-id belongs to another user"


class BatchProgress:
    """The part of the current batch that is stored. The parts of a batch are committed one by one, and the intake loop
    repeats the whole after an error: a message without a name that was stored again would be published twice.
    """

    def __init__(self) -> None:
        self._messages: Sequence[IncomingMessage] = ()
        self._results: dict[int, Result] = {}

    def of(self, messages: Sequence[IncomingMessage]) -> dict[int, Result]:
        """Return the results by position, to which the caller adds: those of earlier tries of the very same batch."""
        if messages is not self._messages:
            self._messages, self._results = messages, {}
        return self._results

    def end(self) -> None:
        """Forget the batch: it is acknowledged."""
        self._messages, self._results = (), {}


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedHandler:
    """Handles the batches of a queue of delayed messages, one batch at a time."""

    pool: Pool
    publisher: Publisher
    names: Names
    metrics: Metrics
    masstransit: MassTransit
    max_body_bytes: int
    publish_timeout: float
    operators: tuple[str, ...] = ()
    history: HistoryLevel = HistoryLevel.ALL
    _registered: set[str] = field(default_factory=set)  # targets that are in the table of delay exchanges
    _progress: BatchProgress = field(default_factory=BatchProgress)

    async def store(self, messages: Sequence[IncomingMessage]) -> list[Result]:
        """Store the messages of a batch. The call can be repeated: what is stored is not stored again.

        After the commits: each message that can be held has a row.
        """
        all_read, yielder = [], LoopYielder()
        for message in messages:
            all_read.append(self._read(message))
            await yielder.give_way()
        read = await self._refuse_closed(all_read)
        reached(Point.CONSUMER_RECEIVED)
        results = self._progress.of(messages)
        waiting: dict[int, DelayedMessage | IncomingMessage] = {}
        for position, each in enumerate(read):
            if position in results:
                continue
            if isinstance(each, RefusedDelayed):
                results[position] = each
            else:
                waiting[position] = each
        with self.metrics.delayed_store_seconds.time():
            for part in cut_by_name(waiting):
                results.update(zip(part, await self._store_part([waiting[position] for position in part]), strict=True))
        return [results[position] for position in range(len(messages))]

    async def finish(self, messages: list[IncomingMessage], results: Sequence[Result], inbox: Inbox) -> None:
        """Park and acknowledge a batch that is stored. It can be repeated."""
        reached(Point.CONSUMER_COMMITTED)
        copies = [
            make_parked_copy(message, exchange=self.names.parking, errors=(result.error,), parked_by="consumer")
            for message, result in zip(messages, results, strict=True)
            if isinstance(result, RefusedDelayed)
        ]
        if copies:
            await park(self.publisher, copies, self.publish_timeout)
        await inbox.acknowledge(messages)
        self._progress.end()
        reached(Point.CONSUMER_ACKNOWLEDGED)
        self._observe(results)

    async def _refuse_closed(self, read: Sequence[Read]) -> Sequence[Read]:
        """Return what was read, and refuse messages that need an open delay exchange, where it is closed."""
        targets = {each.exchange for each in read if isinstance(each, DelayedMessage) and each.must_be_open}
        if not targets:
            return read
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            closed = targets - await find_open(connection, targets)
        return [
            refuse_target(each)
            if isinstance(each, DelayedMessage) and each.must_be_open and each.exchange in closed
            else each
            for each in read
        ]

    def _read(self, message: IncomingMessage) -> Read:
        try:
            message = undo_redelivery(message)
            has_expired = message.exchange == self.names.expired_exchange
            if has_expired:
                restored = undo_expiry(message, self.names.delayed)
                if isinstance(restored, RefusedDelayed):
                    return restored
                message = restored
            if self.masstransit.sent(message):
                return self.masstransit.read(message, datetime.now(UTC))
            read = read_delayed(message, self.names.delay_prefix, datetime.now(UTC), self.max_body_bytes)
            return replace(read, must_be_open=True) if has_expired and isinstance(read, DelayedMessage) else read
        except Exception as error:  # noqa: BLE001 - one unreadable message must not fail its whole batch
            get_log().error("delayed_unreadable", error=type(error).__name__)
            return RefusedDelayed(f"properties: cannot be read: {type(error).__name__}")

    async def _store_part(self, part: Sequence[DelayedMessage | IncomingMessage]) -> Sequence[Result]:
        """Store messages of which `cut_by_name` says that they go together, or carry out commands."""
        messages = [each for each in part if isinstance(each, DelayedMessage)]
        if not messages:
            return await self.masstransit.carry_out([each for each in part if isinstance(each, IncomingMessage)])
        return await store_together_or_one_by_one(
            messages,
            self._store_together,
            lambda _, error: RefusedDelayed(f"body: the database refused it: {error}"),
            self.metrics.split_batches.inc,
        )

    async def _store_together(self, messages: Sequence[DelayedMessage]) -> list[Result]:
        targets = {message.exchange for message in messages}
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
            stored = await store_messages(connection, messages, self.operators)
            await self._tell(connection, messages, stored)
            if new := targets - self._registered:
                await register_exchanges(connection, new)
            reached(Point.CONSUMER_APPLIED)
        self._registered.update(targets)
        return [RefusedDelayed(ANOTHER_OWNER) if each is None else Held(each.replaced) for each in stored]

    async def _tell(
        self, connection: Connection, messages: Sequence[DelayedMessage], stored: Sequence[StoredDelayed | None]
    ) -> None:
        if self.history is HistoryLevel.OFF:
            return
        told = (
            tell_stored(message, each.id, each.due_at, replaced=each.replaced)
            for message, each in zip(messages, stored, strict=True)
            if each is not None
        )
        await add_entries(connection, told, self.history)

    def _observe(self, results: Sequence[Result]) -> None:
        refused = [result for result in results if isinstance(result, RefusedDelayed)]
        self.metrics.delayed_stored.inc(sum(isinstance(result, Held) for result in results))
        self.metrics.delayed_replaced.inc(sum(isinstance(result, Held) and result.replaced for result in results))
        for error, count in Counter(result.error for result in refused).items():
            self.metrics.delayed_parked(error).inc(count)
            get_log().warning("delayed_parked", error=error, count=count)


def refuse_target(message: DelayedMessage) -> RefusedDelayed:
    """Refuse a message whose target is not that of an open delay exchange."""
    field = "message.destination" if isinstance(message, MassTransitMessage) else "exchange"
    target = exchange_label(message.exchange)
    return RefusedDelayed(
        f"{field}: the exchange {target!r} has no open delay exchange; an operator opens it with "
        f"`duebell delay open {target}`"
    )


def cut_by_name(messages: Mapping[int, DelayedMessage | IncomingMessage]) -> Iterator[list[int]]:
    """Yield the positions of messages that can be stored by one statement, in the order of arrival: runs of messages
    without a name, and runs of messages with different ones; and runs of commands.
    """
    part: list[int] = []
    names: set[tuple[str, str]] = set()
    are_messages = True
    for position, message in messages.items():
        key = None
        if isinstance(message, DelayedMessage) and message.name is not None:
            key = message.name, message.exchange
        fits = are_messages is isinstance(message, DelayedMessage) and (
            not names if key is None else bool(names) and key not in names
        )
        if part and not fits:
            yield part
            part, names = [], set()
        are_messages = isinstance(message, DelayedMessage)
        part.append(position)
        names |= set() if key is None else {key}
    if part:
        yield part
