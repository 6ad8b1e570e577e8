"""An application as a user would write it: publishes commands, hears ScheduleDue, gets replies. It knows nothing of
Duebell but the names and messages of the contract.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import uuid4

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractExchange, AbstractIncomingMessage

from shared.amqp.topology import declare_topology
from shared.contract.names import Names
from tests.support.eventually import PATIENCE, eventually
from tests.support.stores import Site


@dataclass(slots=True)
class Event:
    routing_key: str
    content: dict[str, Any]
    raw: AbstractIncomingMessage
    heard_at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(slots=True)
class Application:
    channel: AbstractChannel
    commands: AbstractExchange
    events: AbstractExchange
    names: Names
    reply_queue: str
    heard: list[Event] = field(default_factory=list)
    replies: dict[str, dict[str, Any]] = field(default_factory=dict)
    _numbers: "count[int]" = field(default_factory=count)

    async def send(
        self,
        content: object,
        *,
        key: str = "schedule.request",
        type: str | None = None,  # noqa: A002 - the property's own name
        reply: bool = False,
        timestamp: datetime | None = None,
        headers: dict[str, Any] | None = None,
        user_id: str | None = None,
        app_id: str | None = None,
    ) -> str:
        """Publish a command: bytes as they are, everything else as JSON. Returns the correlation id."""
        correlation_id = f"{next(self._numbers)}-{uuid4().hex[:6]}"
        await self.commands.publish(
            aio_pika.Message(
                content if isinstance(content, bytes) else json.dumps(content).encode(),
                content_type="application/json",
                type=type,
                reply_to=self.reply_queue if reply else None,
                correlation_id=correlation_id,
                timestamp=timestamp,
                headers=headers,
                user_id=user_id,
                app_id=app_id,
                delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            ),
            key,
        )
        return correlation_id

    async def ask(self, content: object, **options: Any) -> dict[str, Any]:
        """Publish a command and wait for its reply."""
        return await self.reply(await self.send(content, reply=True, **options))

    async def request(self, content: object) -> dict[str, Any]:
        return await self.ask(content)

    async def cancel(self, job_id: str, **fields: Any) -> dict[str, Any]:
        return await self.ask({"id": job_id, **fields}, key="schedule.cancel")

    async def pause(self, job_id: str, **fields: Any) -> dict[str, Any]:
        return await self.ask({"id": job_id, **fields}, key="schedule.pause")

    async def resume(self, job_id: str, **fields: Any) -> dict[str, Any]:
        return await self.ask({"id": job_id, **fields}, key="schedule.resume")

    async def trigger(self, job_id: str, trigger_id: str, **fields: Any) -> dict[str, Any]:
        return await self.ask({"id": job_id, "trigger_id": trigger_id, **fields}, key="schedule.trigger")

    async def query(self, job_id: str, **fields: Any) -> dict[str, Any]:
        return await self.ask({"id": job_id, **fields}, key="schedule.query")

    async def reply(self, correlation_id: str) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            return self.replies.get(correlation_id)

        return await eventually(look) or {}

    async def hears(self, number: int, within: float = 20.0) -> list[Event]:
        """Wait until `number` events have come."""

        async def look() -> bool:
            assert len(self.heard) >= number, f"{len(self.heard)} of {number} events so far"
            return True

        await eventually(look, within)
        return self.heard

    async def parked(self, number: int) -> list[AbstractIncomingMessage]:
        """Take `number` messages from the queue of parked messages."""
        queue = await self.channel.get_queue(self.names.parked)
        taken: list[AbstractIncomingMessage] = []

        async def look() -> bool:
            while message := await queue.get(no_ack=True, fail=False):
                taken.append(message)
            assert len(taken) >= number, f"{len(taken)} of {number} parked so far"
            return True

        await eventually(look)
        return taken

    async def count(self, queue: str) -> int:
        """Count the messages that are ready in a queue."""
        declared = await self.channel.declare_queue(queue, passive=True)
        return declared.declaration_result.message_count or 0

    async def binds(self, queue: str, key: str, **arguments: Any) -> None:
        declared = await self.channel.declare_queue(queue, durable=True, arguments=arguments)
        await declared.bind(self.events, key)


@asynccontextmanager
async def an_application(
    site: Site, listen_to: str | None = "due.#", *, declare: bool = True
) -> AsyncIterator[Application]:
    async with (
        await aio_pika.connect(site.amqp_url, timeout=PATIENCE) as connection,
        connection.channel(on_return_raises=True) as channel,
    ):
        if declare:
            await declare_topology(channel, site.names)
        replies = await channel.declare_queue(f"{site.prefix}replies-{uuid4().hex[:6]}", exclusive=True)
        app = Application(
            channel,
            await channel.get_exchange(site.names.commands),
            await channel.get_exchange(site.names.events),
            site.names,
            replies.name,
        )

        async def on_reply(message: AbstractIncomingMessage) -> None:
            app.replies[message.correlation_id or ""] = json.loads(message.body)

        async def on_event(message: AbstractIncomingMessage) -> None:
            app.heard.append(Event(message.routing_key or "", json.loads(message.body), message))

        await replies.consume(on_reply, no_ack=True)
        if listen_to is not None:
            ears = await channel.declare_queue(f"{site.prefix}ears-{uuid4().hex[:6]}", exclusive=True)
            await ears.bind(app.events, listen_to)
            await ears.consume(on_event, no_ack=True)
        yield app
        await asyncio.sleep(0)
