"""The queue that an application listens on, and beside it `<queue>.failed`, which keeps the events that its handler
failed on. The client declares both by name, durable and replicated: events that come while no listener runs wait there.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel
from aiormq.exceptions import ChannelPreconditionFailed

from duebell.link import lost_connections_as_errors, refusals_as_errors
from duebell.names import due_binding

DECLARE_TIMEOUT = 10.0

# RabbitMQ 4 gives a message up after 20 deliveries, whichever process crashed. So this client counts the attempts of
# the handler itself.
DELIVERY_LIMIT = 100_000
_LIMITED: dict[str, Any] = {"x-queue-type": "quorum", "x-delivery-limit": DELIVERY_LIMIT}
# As version 0.1.0 declared the queue of failed events.
_WITHOUT_LIMIT: dict[str, Any] = {"x-queue-type": "quorum"}

OpenChannel = Callable[[], AbstractAsyncContextManager[AbstractChannel]]


async def declare_queues(open_channel: OpenChannel, events_exchange: str, topic: str, name: str) -> None:
    """Declare both queues. A queue of failed events that version 0.1.0 declared stays as it is: the arguments of a
    queue cannot be changed.
    """
    failed = f"{name}.failed"
    with refusals_as_errors():
        try:
            await _declare_failed(open_channel, failed, _LIMITED)
        except ChannelPreconditionFailed:
            await _declare_failed(open_channel, failed, _WITHOUT_LIMIT)
    with refusals_as_errors(), lost_connections_as_errors():
        async with asyncio.timeout(DECLARE_TIMEOUT), open_channel() as channel:
            queue = await channel.declare_queue(
                name,
                durable=True,
                arguments={
                    **_LIMITED,
                    "x-dead-letter-exchange": failed,
                    # The default hop to a dead-letter queue may lose messages; this one waits for its confirm. It
                    # needs reject-publish, which without a length limit never rejects anything.
                    "x-dead-letter-strategy": "at-least-once",
                    "x-overflow": "reject-publish",
                },
            )
            await queue.bind(events_exchange, due_binding(topic))


async def _declare_failed(open_channel: OpenChannel, name: str, arguments: dict[str, Any]) -> None:
    with lost_connections_as_errors():
        async with asyncio.timeout(DECLARE_TIMEOUT), open_channel() as channel:
            # An exchange of its own in front, because few users may write to the default one.
            exchange = await channel.declare_exchange(name, ExchangeType.FANOUT, durable=True)
            parking = await channel.declare_queue(name, durable=True, arguments=arguments)
            await parking.bind(exchange)
