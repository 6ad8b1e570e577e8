"""Sends one command and waits for its verdict, as any application would: mandatory, confirmed, with a reply queue."""

import asyncio
from typing import Any
from uuid import uuid4

import aio_pika
import orjson
from aio_pika.exceptions import DeliveryError

from cli.failures import Failure, NoAnswer
from cli.ground import Ground
from shared.amqp.consuming import Inbox
from shared.amqp.message import IncomingMessage
from shared.runtime.loops import Stop

PUBLISH_TIMEOUT = 10.0


async def send(ground: Ground, type_: str, key: str, content: dict[str, Any], wait: float, *, own: bool) -> Any:  # noqa: ANN401
    """The reply. `own`: with the user of AMQP_URL as user_id, which the broker vouches for."""
    async with ground.broker() as connection:
        channel = connection.channel(on_return_raises=True)
        await channel.initialize()
        replies = await channel.declare_queue(exclusive=True, timeout=PUBLISH_TIMEOUT)
        exchange = await channel.get_exchange(ground.names.commands, ensure=False)
        message = aio_pika.Message(
            orjson.dumps(content),
            type=type_,
            content_type="application/json",
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            reply_to=replies.name,
            correlation_id=uuid4().hex,
            message_id=uuid4().hex,
            user_id=ground.amqp_user if own else None,
        )
        async with Inbox.consuming(channel, replies.name) as inbox:
            try:
                await exchange.publish(message, key, timeout=PUBLISH_TIMEOUT)
            except DeliveryError:
                raise Failure(
                    f"no queue took the command: run python -m shared.topology (exchange {exchange.name})"
                ) from None
            for reply in await _first_within(wait, inbox):
                return orjson.loads(reply.body)
        raise NoAnswer(
            f"no answer within {wait:g} s. The command is safe in {ground.names.inbox}; "
            "see `duebell status` for whether a consumer is running"
        )


async def _first_within(seconds: float, inbox: Inbox) -> list[IncomingMessage]:
    """One reply, or none."""
    try:
        async with asyncio.timeout(seconds):
            return await inbox.next_batch(1, seconds, Stop())
    except TimeoutError:
        return []
