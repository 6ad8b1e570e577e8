"""Asks RabbitMQ how many messages wait in Duebell's own queues. It reads none of them."""

import asyncio
from collections.abc import Mapping

from aiormq.exceptions import AMQPError

from shared.amqp.connection import BROKER_ERRORS, Broker
from shared.amqp.wire import lost_connections_as_errors
from shared.contract.names import Names

COUNT_TIMEOUT = 3.0


async def count_messages(broker: Broker, names: Names) -> Mapping[str, int | None]:
    """Return the number of messages by the role of the queue; None where it cannot be told."""
    roles = {
        "inbox": names.inbox,
        "delayed": names.delayed,
        "deliveries": names.deliveries,
        "parked": names.parked,
        "unrouted": names.unrouted,
    }
    counts: dict[str, int | None] = dict.fromkeys(roles)
    if not broker.is_up:
        return counts
    for role, queue in roles.items():
        try:
            async with asyncio.timeout(COUNT_TIMEOUT), broker.open_channel() as channel:
                with lost_connections_as_errors():
                    found = await channel.declare_queue(queue, passive=True)
                    counts[role] = found.declaration_result.message_count
        except (AMQPError, *BROKER_ERRORS):
            continue  # an error closes the channel; the others may still be told
    return counts
