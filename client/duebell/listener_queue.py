"""The queue that an application listens on, and beside it `<queue>.failed`, where events go that its handler could not
cope with. Declared by name, durable and replicated: events that come while no listener runs wait there.
"""

import asyncio

from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel

from duebell.link import lost_connections_as_errors, refusals_as_errors
from duebell.names import due_binding

DECLARE_TIMEOUT = 10.0

# RabbitMQ 4 gives a message up after 20 deliveries, whichever process crashed. So this client counts the attempts of
# the handler itself.
DELIVERY_LIMIT = 100_000


async def declare_queue(channel: AbstractChannel, events_exchange: str, topic: str, name: str) -> None:
    failed = f"{name}.failed"
    with refusals_as_errors(), lost_connections_as_errors():
        async with asyncio.timeout(DECLARE_TIMEOUT):
            # An exchange of its own in front, because few users may write to the default one.
            exchange = await channel.declare_exchange(failed, ExchangeType.FANOUT, durable=True)
            parking = await channel.declare_queue(failed, durable=True, arguments={"x-queue-type": "quorum"})
            await parking.bind(exchange)
            queue = await channel.declare_queue(
                name,
                durable=True,
                arguments={
                    "x-queue-type": "quorum",
                    "x-delivery-limit": DELIVERY_LIMIT,
                    "x-dead-letter-exchange": failed,
                    # The default hop to a dead-letter queue may lose messages; this one waits for its confirm. It
                    # needs reject-publish, which without a length limit never rejects anything.
                    "x-dead-letter-strategy": "at-least-once",
                    "x-overflow": "reject-publish",
                },
            )
            await queue.bind(events_exchange, due_binding(topic))
