"""The application of a chaos run. It sends commands until the broker has confirmed them, consumes every due event and
every reply, and records all of them in the ledger. Of Duebell it knows the contract alone.
"""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from uuid import uuid4

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractExchange, AbstractIncomingMessage

from shared.amqp.connection import BROKER_ERRORS
from shared.amqp.topology import declare_delay_exchange
from shared.amqp.wire import lost_connections_as_errors
from shared.contract.names import CANCEL_KEY, REQUEST_KEY, Names
from tests.chaos.ledger import Command, DelayedMessage, Heard, HeardMessage, Kind, Ledger, Plan, Reply, now
from tests.chaos.reconnecting import ReconnectingConnection

LISTENER, REPLIES = "chaos.listener", "chaos.replies"
# The exchange of delayed messages has a name to which the producers' user may publish.
LATER, LATER_QUEUE = "my-app.chaos", "chaos.later"
HEARS = "due.#"
CONFIRM_SECONDS = 4.0
AGAIN_SECONDS = 0.3
PREFETCH = 200
# More would wait for their confirms longer than CONFIRM_SECONDS after an outage, and be sent again and again.
MAX_UNCONFIRMED = 200
# Commands that are kept, to be sent again: some minutes' worth.
MAX_KEPT = 20_000
MAX_SENT_AGAIN_AT_ONCE = 50
QUORUM = {"x-queue-type": "quorum"}


async def declare_queues(channel: AbstractChannel, names: Names) -> None:
    """Declare the queues of events and replies. Both survive a restart of the broker. Idempotent."""
    await channel.declare_queue(REPLIES, durable=True, arguments=dict(QUORUM))
    listener = await channel.declare_queue(LISTENER, durable=True, arguments=dict(QUORUM))
    await listener.bind(names.events, HEARS)
    later = await channel.declare_queue(LATER_QUEUE, durable=True, arguments=dict(QUORUM))
    await later.bind(await channel.declare_exchange(LATER, aio_pika.ExchangeType.TOPIC, durable=True), "#")
    await declare_delay_exchange(channel, names, LATER)


class Application:
    """The application, with two connections: a broker short of memory stops reading from those that publish."""

    def __init__(self, url: str, ledger: Ledger) -> None:
        self._ledger = ledger
        self._names = Names()
        self._room = asyncio.Semaphore(MAX_UNCONFIRMED)
        self._sent: deque[tuple[datetime, str, dict[str, object], str]] = deque(maxlen=MAX_KEPT)
        self._commands: AbstractExchange | None = None
        self._delays: AbstractExchange | None = None
        self.publishing = ReconnectingConnection(url, "chaos-publishes", self._prepare_publishing)
        self.consuming = ReconnectingConnection(url, "chaos-consumes", self._prepare_consuming)

    async def request(self, job: str, plan: Plan, content: dict[str, object], revision: int = 1) -> None:
        webhook = "webhook" in content
        tries = await self._send(REQUEST_KEY, {**content, "id": job, "revision": revision}, Kind.REQUEST, revision)
        self._ledger.commands.append(Command(job, Kind.REQUEST, now(), revision, plan, webhook, tries))

    async def cancel(self, job: str) -> None:
        tries = await self._send(CANCEL_KEY, {"id": job}, Kind.CANCEL, 0)
        self._ledger.commands.append(Command(job, Kind.CANCEL, now(), 0, tries=tries))

    async def delay(self, message_id: str, due_at: datetime) -> None:
        """Publish a message that is to reach the application's own queue at the moment."""
        tries = await self._until_confirmed(lambda: self._try_to_delay(message_id, due_at))
        self._ledger.delayed.append(DelayedMessage(message_id, due_at, now(), tries))

    async def send_again(self, since: datetime) -> int:
        """Send the commands again that were confirmed since then, those of one job in their order. Returns how many."""
        by_job: dict[object, list[tuple[str, dict[str, object], str]]] = {}
        for sent_at, key, content, correlation_id in self._sent:
            if sent_at >= since:
                by_job.setdefault(content["id"], []).append((key, content, correlation_id))
        room = asyncio.Semaphore(MAX_SENT_AGAIN_AT_ONCE)

        async def send_all(commands: list[tuple[str, dict[str, object], str]]) -> None:
            async with room:
                for command in commands:
                    await self._send_until_confirmed(*command)

        async with asyncio.TaskGroup() as tasks:
            for commands in by_job.values():
                tasks.create_task(send_all(commands))
        return sum(map(len, by_job.values()))

    async def _send(self, key: str, content: dict[str, object], kind: Kind, revision: int) -> int:
        correlation_id = f"{kind} {revision} {content['id']}"
        tries = await self._send_until_confirmed(key, content, correlation_id)
        self._sent.append((now(), key, content, correlation_id))
        return tries

    async def _send_until_confirmed(self, key: str, content: dict[str, object], correlation_id: str) -> int:
        return await self._until_confirmed(lambda: self._try_to_send(key, content, correlation_id))

    async def _until_confirmed(self, send: Callable[[], Awaitable[None]]) -> int:
        """Publish until the broker confirms. Returns the number of tries; an unconfirmed one may have arrived."""
        tries = 0
        while True:
            tries += 1
            try:
                async with self._room:
                    await send()
            except BROKER_ERRORS:
                await asyncio.sleep(AGAIN_SECONDS)
            except Exception as error:
                # aiormq ends a publish with this very class if the connection closes without an error.
                if type(error) is not Exception:
                    raise
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                return tries

    async def _try_to_send(self, key: str, content: dict[str, object], correlation_id: str) -> None:
        if self._commands is None:
            raise ConnectionError("not connected yet")
        message = aio_pika.Message(
            json.dumps(content).encode(),
            content_type="application/json",
            message_id=uuid4().hex,
            reply_to=REPLIES,
            correlation_id=correlation_id,
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        )
        with lost_connections_as_errors():
            async with asyncio.timeout(CONFIRM_SECONDS):
                await self._commands.publish(message, key)

    async def _try_to_delay(self, message_id: str, due_at: datetime) -> None:
        if self._delays is None:
            raise ConnectionError("not connected yet")
        message = aio_pika.Message(
            json.dumps({"id": message_id, "revision": 1}).encode(),
            headers={"x-deliver-at": due_at.isoformat()},
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        )
        with lost_connections_as_errors():
            async with asyncio.timeout(CONFIRM_SECONDS):
                await self._delays.publish(message, "later")

    async def _prepare_publishing(self, channel: AbstractChannel) -> None:
        self._commands = await channel.get_exchange(self._names.commands)
        self._delays = await channel.get_exchange(self._names.delay_exchange(LATER))

    async def _prepare_consuming(self, channel: AbstractChannel) -> None:
        await channel.set_qos(prefetch_count=PREFETCH)
        await (await channel.get_queue(LISTENER)).consume(self._on_event)
        await (await channel.get_queue(REPLIES)).consume(self._on_reply)
        await (await channel.get_queue(LATER_QUEUE)).consume(self._on_delayed)

    async def _on_event(self, message: AbstractIncomingMessage) -> None:
        self._ledger.heard.append(read_event(message.body, now()))
        await _acknowledge(message)

    async def _on_delayed(self, message: AbstractIncomingMessage) -> None:
        self._ledger.heard_delayed.append(HeardMessage(json.loads(message.body)["id"], now()))
        await _acknowledge(message)

    async def _on_reply(self, message: AbstractIncomingMessage) -> None:
        kind, revision, job = (message.correlation_id or "").split(maxsplit=2)
        outcome = json.loads(message.body)["outcome"]
        self._ledger.replies.append(Reply(job, Kind(kind), int(revision), outcome, now()))
        await _acknowledge(message)


async def _acknowledge(message: AbstractIncomingMessage) -> None:
    """Acknowledge the message. If the channel is lost, it comes again."""
    with suppress(*BROKER_ERRORS):
        await message.ack()


def read_event(body: bytes, seen_at: datetime) -> Heard:
    event = json.loads(body)
    return Heard(
        event["id"],
        event["idempotency_key"],
        datetime.fromisoformat(event["due_at"]),
        datetime.fromisoformat(event["fired_at"]),
        seen_at,
        "webhook" in event,
    )
