"""What every peer's handler does: one persistent message, confirmed."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aio_pika

BODY = b'{"text": "' + b"x" * 250 + b'"}'

Publish = Callable[[], Awaitable[None]]


@asynccontextmanager
async def a_publisher(amqp_url: str, queue: str) -> AsyncIterator[Publish]:
    async with await aio_pika.connect(amqp_url) as connection, connection.channel() as channel:
        message = aio_pika.Message(BODY, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)

        async def publish() -> None:
            await channel.default_exchange.publish(message, routing_key=queue)

        yield publish
