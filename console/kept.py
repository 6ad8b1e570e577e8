"""Looks into the queues of kept messages, sends messages of them again, and drops them. A look takes the oldest
messages for a moment, and RabbitMQ puts them back into their places.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from console.errors import NotSent
from shared.amqp.connection import BROKER_ERRORS, Broker
from shared.amqp.consuming import Inbox
from shared.amqp.publisher import Publisher
from shared.amqp.wire import lost_connections_as_errors
from shared.contract.names import Names
from shared.kept.message import KeptMessage, Kind
from shared.kept.queue import Found, KeptQueue
from shared.postgres.errors import describe

MAX_SHOWN_MESSAGES = 200
LOOK_TIMEOUT = 10.0


@dataclass(slots=True)
class KeptMessages:
    """`reading` and `publishing` are two connections: one whose inbox is full reads nothing more, and no confirms."""

    reading: Broker
    publishing: Broker
    names: Names

    async def look(self, kind: Kind) -> Found:
        """Return the oldest messages, MAX_SHOWN_MESSAGES at most. Raises NotSent if RabbitMQ does not answer."""
        async with self._open(kind) as (queue, number):
            return await _look(queue, number)

    async def send_again(self, kind: Kind, ids: Sequence[str]) -> tuple[int, list[KeptMessage]]:
        """Send messages again. Return how many were sent, and those that stay because no queue took them."""
        async with self._open(kind) as (queue, number):
            chosen = _chosen(await _look(queue, number), ids)
            left = await queue.send_again(chosen)
            return len(chosen) - len(left), left

    async def drop(self, kind: Kind, ids: Sequence[str]) -> int:
        """Drop messages for good. Return how many."""
        async with self._open(kind) as (queue, number):
            chosen = _chosen(await _look(queue, number), ids)
            await queue.drop(chosen)
            return len(chosen)

    @asynccontextmanager
    async def _open(self, kind: Kind) -> AsyncIterator[tuple[KeptQueue, int]]:
        """Open the queue. Yield it, and how many messages were in it."""
        name = kind.queue_of(self.names)
        try:
            async with (
                asyncio.timeout(LOOK_TIMEOUT),
                self.reading.open_channel(prefetch=MAX_SHOWN_MESSAGES) as channel,
                Publisher(self.publishing) as publisher,
            ):
                with lost_connections_as_errors():
                    queue = await channel.declare_queue(name, passive=True)
                async with Inbox.consuming(channel, name) as inbox:
                    kept = KeptQueue(kind, self.names, inbox, publisher)
                    yield kept, queue.declaration_result.message_count or 0
        except BROKER_ERRORS as error:
            raise NotSent(f"RabbitMQ: {describe(error)}") from None


async def _look(queue: KeptQueue, number: int) -> Found:
    """Take the oldest messages, and do not wait for more than there were."""
    if number == 0:
        return Found([], all_seen=True)
    found = await queue.look(min(number, MAX_SHOWN_MESSAGES))
    return Found(found.messages, all_seen=number <= MAX_SHOWN_MESSAGES)


def _chosen(found: Found, ids: Sequence[str]) -> list[KeptMessage]:
    wanted = set(ids)
    return [one for one in found.messages if one.id in wanted]
