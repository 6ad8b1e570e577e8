"""A connection to RabbitMQ for as long as a block runs. When it is lost, the block ends with an error and its user
starts afresh: that is simpler than to reason about what a restored connection has forgotten.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractQueue
from aiormq.exceptions import AMQPError, ChannelInvalidStateError
from pamqp.common import FieldTable

SECONDS = 10.0
BROKER_TROUBLE = (AMQPError, ChannelInvalidStateError, OSError, TimeoutError)

# Replies that are never consumed must not fill the broker: the oldest are dropped. One that comes back while our
# database is away must not be dropped for that: RabbitMQ 4 would, after 20 times.
_REPLIES: FieldTable = {"x-queue-type": "quorum", "x-max-length": 100_000, "x-delivery-limit": 100_000}


@asynccontextmanager
async def a_channel(url: str, name: str) -> AsyncIterator[AbstractChannel]:
    """Open a channel. It confirms what is published, and raises if a message could not be routed."""
    with _losses_as_errors():
        connection = await aio_pika.connect(url, timeout=SECONDS, client_properties={"connection_name": name})
        try:
            yield await connection.channel(publisher_confirms=True, on_return_raises=True)
        finally:
            with suppress(*BROKER_TROUBLE, RuntimeError):
                async with asyncio.timeout(3):
                    await connection.close()


async def declare_replies(channel: AbstractChannel, queue: str) -> AbstractQueue:
    return await channel.declare_queue(queue, durable=True, arguments=_REPLIES, timeout=SECONDS)


@contextmanager
def _losses_as_errors() -> Iterator[None]:
    """Wrap every wait for the broker. For a connection that has just been lost, aio-pika may raise a RuntimeError, or a
    CancelledError although no task was cancelled, which would end the waiting task without a log line.
    """
    try:
        yield
    except RuntimeError as error:
        raise ConnectionError(str(error)) from error
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) and task.cancelling():
            raise
        raise ConnectionError("the broker stopped answering") from None
