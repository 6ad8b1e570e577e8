"""Reads a queue of kept messages, `scheduler.parked` or `scheduler.unrouted`, without acknowledging: when the channel
closes, RabbitMQ puts every message that was not acknowledged back into its place.
"""

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from cli.errors import BadUsage, Failure
from cli.store_errors import broker_failure
from cli.stores import STORE_CONNECT_TIMEOUT, Stores
from shared.amqp.connection import BROKER_ERRORS, Broker
from shared.amqp.consuming import Inbox
from shared.amqp.message import IncomingMessage, OutgoingMessage, PublishResult
from shared.amqp.publisher import Publisher
from shared.contract.names import Names
from shared.runtime.loops import Stop

# The limits of one look, which bound its memory.
MAX_KEPT_MESSAGES = 10_000
MAX_KEPT_BYTES = 256 * 1024 * 1024
QUIET_SECONDS = 0.5
PUBLISH_TIMEOUT = 10.0
DUEBELL_HEADERS = ("duebell-", "x-death", "x-first-death", "x-last-death", "x-delivery-count")


@dataclass(frozen=True, slots=True)
class KeptMessage(ABC):
    """A message in a queue of kept ones."""

    message: IncomingMessage

    @property
    def id(self) -> str:
        """A hash of message_id and body: message_ids of one batch begin alike, and a message that the broker parked
        itself may have none.
        """
        named = (self.message.message_id or "").encode() + b"\0" + self.message.body
        return hashlib.sha256(named).hexdigest()[:16]

    @property
    def job(self) -> str | None:
        """The id in the body, if there is one."""
        found = self.content.get("id")
        return found[:200] if isinstance(found, str) else None

    @property
    def content(self) -> dict[str, Any]:
        """The body, if it is a JSON object; else empty."""
        try:
            content = orjson.loads(self.message.body)
        except orjson.JSONDecodeError:
            return {}
        return content if isinstance(content, dict) else {}

    @property
    @abstractmethod
    def reason(self) -> str:
        """Why it is kept."""

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """Return what a list shows of it."""

    @abstractmethod
    def original_message(self, names: Names) -> OutgoingMessage:
        """Return the message as it was, for the exchange it came from."""

    def details(self) -> dict[str, Any]:
        body = self.message.body.decode("utf-8", "replace")
        headers = {name: value for name, value in self.message.headers.items() if name != "duebell-errors"}
        properties = {
            name: getattr(self.message, name)
            for name in ("content_type", "content_encoding", "correlation_id", "reply_to", "timestamp", "app_id")
        }
        return {**self.summary(), **properties, "headers": headers, "bytes": len(self.message.body), "body": body}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of kept messages: its command, and the queue in which they are."""

    command: str
    queue_of: Callable[[Names], str]
    read: Callable[[IncomingMessage], KeptMessage]


@dataclass(frozen=True, slots=True)
class Found:
    """What a look has found, the oldest first. `all_seen` says that the queue had no more."""

    messages: list[KeptMessage]
    all_seen: bool


@dataclass(frozen=True, slots=True)
class KeptQueue:
    kind: Kind
    names: Names
    inbox: Inbox
    publisher: Publisher

    async def look(self) -> Found:
        """Take messages until no more come for QUIET_SECONDS, at most MAX_KEPT_MESSAGES and MAX_KEPT_BYTES of them."""
        found: list[KeptMessage] = []
        size = 0
        while len(found) < MAX_KEPT_MESSAGES and size < MAX_KEPT_BYTES:
            batch: list[IncomingMessage] = []
            try:
                async with asyncio.timeout(QUIET_SECONDS):
                    batch = await self.inbox.next_batch(MAX_KEPT_MESSAGES - len(found), 0.05, Stop())
            except TimeoutError:
                return Found(found, all_seen=True)
            if not batch:
                raise ConnectionError("the broker connection was lost")
            found += (self.kind.read(message) for message in batch)
            size += sum(len(message.body) for message in batch)
        return Found(found, all_seen=False)

    async def send_again(self, chosen: Sequence[KeptMessage]) -> list[KeptMessage]:
        """Publish the messages as they were, then take those out of the queue that the broker has confirmed. Return the
        others. A crash between the two leaves a message in the queue that was sent: it is sent twice, never lost.
        """
        originals = [one.original_message(self.names) for one in chosen]
        results = await self.publisher.publish(originals, PUBLISH_TIMEOUT)
        await self.drop([one for one, result in zip(chosen, results, strict=True) if result is PublishResult.CONFIRMED])
        return [one for one, result in zip(chosen, results, strict=True) if result is not PublishResult.CONFIRMED]

    async def drop(self, chosen: Sequence[KeptMessage]) -> None:
        """Take the messages out of the queue."""
        await self.inbox.acknowledge_only([one.message for one in chosen])


@asynccontextmanager
async def kept_queue(stores: Stores, kind: Kind, *, sends: bool = False) -> AsyncIterator[KeptQueue]:
    """Take messages without acknowledging them. `sends` says that copies of them are to be published, too."""
    url, queue = stores.amqp_address.get(), kind.queue_of(stores.names)
    needs = f"to read {queue}" + (", and to publish to any exchange" if sends else "")
    async with stores.broker(needs):
        pass  # Broker below tries again and again; this says at once, and in words, what is wrong
    # Two connections: one whose inbox is full reads nothing more, and no confirms either.
    async with (
        Broker(url, name="duebell-cli", names=stores.names).connected() as broker,
        Broker(url, name="duebell-cli-back", names=stores.names).connected() as outbound,
    ):
        try:
            async with asyncio.timeout(STORE_CONNECT_TIMEOUT):
                await broker.wait_until_up()
            async with (
                broker.open_channel(prefetch=MAX_KEPT_MESSAGES) as channel,
                Inbox.consuming(channel, queue) as inbox,
                Publisher(outbound) as publisher,
            ):
                yield KeptQueue(kind, stores.names, inbox, publisher)
        except BROKER_ERRORS as error:
            raise broker_failure(error, url, needs) from None


def choose(found: Found, kind: Kind, wanted: Sequence[str]) -> list[KeptMessage]:
    """Find messages by the beginnings of their ids. Raises Failure if one matches no message, BadUsage if several."""
    chosen: dict[str, KeptMessage] = {}
    for beginning in wanted:
        fitting = [one for one in found.messages if one.id.startswith(beginning)]
        if not fitting:
            seen = "" if found.all_seen else f" the oldest {len(found.messages):,} of"
            raise Failure(
                f"{beginning!r} is not among{seen} the {kind.command} messages: see `duebell {kind.command} list`"
            )
        if len(fitting) > 1:
            raise BadUsage(f"{beginning!r} names {len(fitting)} {kind.command} messages: write more of the id")
        chosen[fitting[0].id] = fitting[0]
    return list(chosen.values())
