"""Checks one command, sends it to Duebell and waits for its reply, as an application would: mandatory and confirmed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol
from uuid import uuid4

import aio_pika
import orjson
from aio_pika.exceptions import DeliveryError

from cli.errors import Failure, NoAnswer
from cli.local_check import rejection_of
from cli.operator import APP_ID, operator_name
from cli.stores import Stores
from shared.amqp.consuming import Inbox
from shared.amqp.message import IncomingMessage
from shared.contract.names import OPERATOR_HEADER
from shared.runtime.loops import Stop

PUBLISH_TIMEOUT = 10.0


class Ask(Protocol):
    """Publishes a command and returns its reply."""

    async def __call__(self, type_: str, key: str, content: dict[str, Any], wait: float, *, own: bool) -> Any: ...  # noqa: ANN401


@asynccontextmanager
async def a_conversation(stores: Stores) -> AsyncIterator[Ask]:
    """Connect to send commands one after the other, each with its reply. `own` sends the user of AMQP_URL as user_id;
    the broker checks it. A command that the consumer would refuse is not published: its reply is made here.
    """
    async with stores.broker(f"to publish to {stores.names.commands}, and to have a queue for replies") as connection:
        channel = connection.channel(on_return_raises=True)
        await channel.initialize()
        replies = await channel.declare_queue(exclusive=True, timeout=PUBLISH_TIMEOUT)
        exchange = await channel.get_exchange(stores.names.commands, ensure=False)
        async with Inbox.consuming(channel, replies.name) as inbox:

            async def ask(type_: str, key: str, content: dict[str, Any], wait: float, *, own: bool) -> Any:  # noqa: ANN401
                body = orjson.dumps(content)
                if (rejected := rejection_of(type_, key, body, stores.max_payload_bytes)) is not None:
                    return rejected
                message = aio_pika.Message(
                    body,
                    type=type_,
                    app_id=APP_ID,
                    headers={OPERATOR_HEADER: operator_name()},
                    content_type="application/json",
                    delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
                    reply_to=replies.name,
                    correlation_id=uuid4().hex,
                    message_id=uuid4().hex,
                    user_id=stores.amqp_user if own else None,
                )
                try:
                    await exchange.publish(message, key, timeout=PUBLISH_TIMEOUT)
                except DeliveryError:
                    raise Failure(
                        f"no queue took the command: run python -m shared.topology (exchange {exchange.name})"
                    ) from None
                for reply in await _first_within(wait, inbox):
                    await inbox.acknowledge([reply])
                    return orjson.loads(reply.body)
                raise NoAnswer(
                    f"no answer within {wait:g} s. The command is safe in {stores.names.inbox}; "
                    "see `duebell status` for whether a consumer is running"
                )

            yield ask


async def send(stores: Stores, type_: str, key: str, content: dict[str, Any], wait: float, *, own: bool) -> Any:  # noqa: ANN401
    """Publish one command and return its reply. One that the consumer would refuse needs no connection."""
    if (rejected := rejection_of(type_, key, orjson.dumps(content), stores.max_payload_bytes)) is not None:
        return rejected
    async with a_conversation(stores) as ask:
        return await ask(type_, key, content, wait, own=own)


async def _first_within(seconds: float, inbox: Inbox) -> list[IncomingMessage]:
    """Wait for one reply. Returns an empty list after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return await inbox.next_batch(1, seconds, Stop())
    except TimeoutError:
        return []
