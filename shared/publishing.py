"""Publishing with a verdict for each message. The only place that writes events, parked commands and replies.

A message counts as published when the broker has confirmed it, and only then. A timeout or a lost channel means
*unknown*, not failed: the broker may have it, so the caller must be ready to send it again, and the channel is retired
because its outstanding confirms can no longer be told apart.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import TracebackType
from typing import Any, Self, cast
from uuid import uuid4

from aio_pika.abc import AbstractChannel
from aiormq.channel import Channel as UnderlayChannel
from aiormq.exceptions import ChannelClosed, DeliveryError, PublishError
from pamqp.commands import Basic

from shared.broker import BROKER_TROUBLE, Broker
from shared.lifecycle import first_of

PERSISTENT = 2
# For publishes to learn why their channel was closed.
LAST_WORDS = 0.1


class Verdict(StrEnum):
    CONFIRMED = "confirmed"
    RETURNED = "returned"  # no queue took it
    NACKED = "nacked"  # a queue refused it, most likely because it is full
    UNKNOWN = "unknown"  # no answer in time, or the channel was lost
    CLOSED = "closed"  # the broker closed the channel over a message: this one, if it was alone


@dataclass(frozen=True, slots=True)
class Outgoing:
    exchange: str
    routing_key: str
    body: bytes
    type: str | None = None
    content_type: str | None = "application/json"
    correlation_id: str | None = None
    reply_to: str | None = None
    timestamp: datetime | None = None
    headers: dict[str, Any] = field(default_factory=dict)
    mandatory: bool = True


class Publisher:
    """One channel of its own, opened when needed and replaced after trouble. For one task at a time."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._stack = AsyncExitStack()
        self._channel: AbstractChannel | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self._retire()

    async def publish(self, messages: Sequence[Outgoing], timeout: float) -> list[Verdict]:
        """One verdict per message, in order, within the timeout. Never raises for what the broker does."""
        if not messages:
            return []
        try:
            async with asyncio.timeout(timeout):
                channel = await self._open()
        except BROKER_TROUBLE:
            await self._retire()
            return [Verdict.UNKNOWN] * len(messages)
        # Tasks, not gather under a timeout: a stalled broker can surface as a CancelledError that nobody asked for,
        # which must stay inside its own publish.
        tasks = [asyncio.create_task(_publish_one(channel, message)) for message in messages]
        closing = channel.closing
        try:
            # aiormq leaves some publishes waiting for ever when their connection dies: the channel's end is theirs too.
            await first_of(asyncio.wait(tasks), asyncio.wait({closing}), asyncio.sleep(timeout))
            await asyncio.wait(tasks, timeout=LAST_WORDS)
        finally:
            closing.cancel()  # an observer of our own: it would stay with the channel for good
            unfinished = [task for task in tasks if not task.done()]
            for task in unfinished:
                task.cancel()
            if unfinished:
                await asyncio.wait(unfinished)
        verdicts = [_verdict_of(task) for task in tasks]
        if any(verdict in {Verdict.UNKNOWN, Verdict.CLOSED} for verdict in verdicts):
            await self._retire()
        if Verdict.CLOSED in verdicts or Verdict.RETURNED in verdicts:
            await self._heal_topology()
        return verdicts

    async def _open(self) -> UnderlayChannel:
        if self._channel is None or self._channel.is_closed:
            await self._retire()
            self._channel = await self._stack.enter_async_context(self._broker.open_channel())
        return cast("UnderlayChannel", await self._channel.get_underlay_channel())

    async def _heal_topology(self) -> None:
        # The usual reason for a closed channel or a returned event is an exchange or queue that somebody deleted.
        with suppress(*BROKER_TROUBLE):
            await self._broker.redeclare()

    async def _retire(self) -> None:
        self._channel = None
        await self._stack.aclose()


async def _publish_one(channel: UnderlayChannel, message: Outgoing) -> None:
    await channel.basic_publish(
        message.body,
        exchange=message.exchange,
        routing_key=message.routing_key,
        mandatory=message.mandatory,
        wait=False,
        properties=Basic.Properties(
            # Returns are matched by message_id, so it is fresh for every publish; what stays the same between two
            # publishes of one occurrence is the idempotency key.
            message_id=uuid4().hex,
            delivery_mode=PERSISTENT,
            content_type=message.content_type,
            message_type=message.type,
            correlation_id=message.correlation_id,
            reply_to=message.reply_to,
            timestamp=message.timestamp,
            headers=message.headers or None,
        ),
    )


def _verdict_of(task: asyncio.Task[None]) -> Verdict:
    if task.cancelled():
        return Verdict.UNKNOWN
    match task.exception():
        case None:
            return Verdict.CONFIRMED
        case PublishError():
            return Verdict.RETURNED
        case DeliveryError():
            return Verdict.NACKED
        case ChannelClosed():
            return Verdict.CLOSED
        case _:
            return Verdict.UNKNOWN
