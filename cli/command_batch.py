"""Sends many commands of one kind over one connection, and gathers their replies: mandatory and confirmed, as
`cli.command_client` sends one.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import aio_pika
import orjson
from aio_pika.abc import AbstractExchange
from aio_pika.exceptions import DeliveryError

from cli.command_client import PUBLISH_TIMEOUT
from cli.errors import Failure
from cli.operator import APP_ID, operator_name
from cli.stores import Stores
from shared.amqp.consuming import Inbox
from shared.contract.names import OPERATOR_HEADER
from shared.runtime.loops import Stop

SENT_TOGETHER = 100

Reply = Mapping[str, Any]


async def send_all(
    stores: Stores, type_: str, key: str, contents: Sequence[Mapping[str, Any]], wait: float
) -> list[Reply | None]:
    """Publish the commands in the name of the user of AMQP_URL. Return one reply each, in order; None where no reply
    came within `wait` seconds after SENT_TOGETHER of them were sent.
    """
    replies: list[Reply | None] = []
    async with stores.broker(f"to publish to {stores.names.commands}, and to have a queue for replies") as connection:
        channel = connection.channel(on_return_raises=True)
        await channel.initialize()
        queue = await channel.declare_queue(exclusive=True, timeout=PUBLISH_TIMEOUT)
        exchange = await channel.get_exchange(stores.names.commands, ensure=False)
        async with Inbox.consuming(channel, queue.name) as inbox:
            for first in range(0, len(contents), SENT_TOGETHER):
                part = contents[first : first + SENT_TOGETHER]
                numbers = {uuid4().hex: number for number in range(len(part))}
                try:
                    async with asyncio.TaskGroup() as tasks:
                        for correlation_id, number in numbers.items():
                            message = _message(stores, type_, part[number], queue.name, correlation_id)
                            tasks.create_task(_publish(exchange, message, key))
                except* DeliveryError:
                    raise Failure("no queue took the command: run python -m shared.topology") from None
                replies += await _replies(inbox, numbers, wait)
    return replies


async def _publish(exchange: AbstractExchange, message: aio_pika.Message, key: str) -> None:
    await exchange.publish(message, key, timeout=PUBLISH_TIMEOUT)


def _message(
    stores: Stores, type_: str, content: Mapping[str, Any], reply_to: str, correlation_id: str
) -> aio_pika.Message:
    return aio_pika.Message(
        orjson.dumps(content),
        type=type_,
        app_id=APP_ID,
        headers={OPERATOR_HEADER: operator_name()},
        content_type="application/json",
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        reply_to=reply_to,
        correlation_id=correlation_id,
        message_id=correlation_id,
        user_id=stores.amqp_user,
    )


async def _replies(inbox: Inbox, numbers: Mapping[str, int], wait: float) -> list[Reply | None]:
    replies: list[Reply | None] = [None] * len(numbers)
    missing = len(numbers)
    try:
        async with asyncio.timeout(wait):
            while missing:
                for message in await inbox.next_batch(missing, 0.01, Stop()):
                    number = numbers.get(message.correlation_id or "")
                    if number is not None and replies[number] is None:
                        replies[number] = orjson.loads(message.body)
                        missing -= 1
    except TimeoutError:
        pass
    return replies
