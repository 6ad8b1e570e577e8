"""Asks RabbitMQ how many messages wait in Duebell's own queues. It reads none of them."""

import asyncio
from collections.abc import Mapping

from aiormq.exceptions import ChannelAccessRefused, ChannelNotFoundEntity

from shared.amqp.connection import BROKER_ERRORS, Broker
from shared.amqp.wire import lost_connections_as_errors
from shared.contract.names import Names

COUNT_TIMEOUT = 3.0


async def count_messages(broker: Broker, names: Names) -> Mapping[str, int | None] | None:
    """Return the number of messages by the role of the queue, None for a queue that is not there, or that the console's
    user may not see. Return None, and no numbers at all, if RabbitMQ does not answer within COUNT_TIMEOUT.
    """
    roles = {
        "inbox": names.inbox,
        "delayed": names.delayed,
        "deliveries": names.deliveries,
        "parked": names.parked,
        "unrouted": names.unrouted,
    }
    if not broker.is_up:
        return None
    try:
        async with asyncio.timeout(COUNT_TIMEOUT):
            return {role: await _count(broker, queue) for role, queue in roles.items()}
    except BROKER_ERRORS:
        return None


async def _count(broker: Broker, queue: str) -> int | None:
    try:
        async with broker.open_channel() as channel:
            with lost_connections_as_errors():
                found = await channel.declare_queue(queue, passive=True)
                return found.declaration_result.message_count
    except (ChannelNotFoundEntity, ChannelAccessRefused):
        return None
