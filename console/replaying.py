"""Asks the delivery service to try failed deliveries again, by a message straight to its queue, and looks in the
database whether it has.
"""

import asyncio
from collections.abc import Sequence
from uuid import uuid4

from aio_pika import DeliveryMode, Message
from aio_pika.exceptions import DeliveryError

from console.commands import CONSOLE_APP_ID, user_of
from console.errors import NotSent
from console.web.context import Console, Visit
from shared.amqp.connection import BROKER_ERRORS
from shared.amqp.wire import lost_connections_as_errors
from shared.contract.names import OPERATOR_HEADER
from shared.contract.replay import MAX_REPLAYED_TOGETHER, REPLAY_TYPE, write_replay
from shared.postgres.errors import describe
from shared.reading.replays import count_replays

LOOK_EVERY_SECONDS = 0.2
LOOKS = 25


async def replay(visit: Visit, delivery_ids: Sequence[int]) -> int:
    """Send the deliveries in the name of the visitor. Return how many have a replay in the end. Raises NotSent."""
    sender = visit.console.commands
    try:
        async with asyncio.timeout(sender.reply_timeout), sender.broker.open_channel() as channel:
            with lost_connections_as_errors():
                for first in range(0, len(delivery_ids), MAX_REPLAYED_TOGETHER):
                    message = Message(
                        write_replay(delivery_ids[first : first + MAX_REPLAYED_TOGETHER]),
                        type=REPLAY_TYPE,
                        app_id=CONSOLE_APP_ID,
                        headers={OPERATOR_HEADER: visit.user.name},
                        content_type="application/json",
                        delivery_mode=DeliveryMode.PERSISTENT,
                        message_id=uuid4().hex,
                        user_id=user_of(sender.amqp_url),
                    )
                    await channel.default_exchange.publish(message, sender.names.deliveries)
    except TimeoutError:
        raise NotSent("RabbitMQ does not answer") from None
    except DeliveryError:
        raise NotSent("the queue of deliveries is not there: run python -m shared.topology") from None
    except BROKER_ERRORS as error:
        raise NotSent(describe(error)) from None
    return await _wait_for_replays(visit.console, delivery_ids)


async def _wait_for_replays(console: Console, delivery_ids: Sequence[int]) -> int:
    replayed = 0
    for _ in range(LOOKS):
        async with console.reading() as connection:
            replayed = await count_replays(connection, delivery_ids)
        if replayed == len(delivery_ids):
            break
        await asyncio.sleep(LOOK_EVERY_SECONDS)
    return replayed
