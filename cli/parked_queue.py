"""Reads the queue `scheduler.parked` without acknowledging: when the channel closes, RabbitMQ puts every message that
was not acknowledged back into its place.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from cli.errors import BadUsage, Failure
from cli.store_errors import broker_failure
from cli.stores import STORE_CONNECT_TIMEOUT, Stores
from shared.amqp.connection import BROKER_ERRORS, Broker
from shared.amqp.consuming import Inbox
from shared.amqp.message import IncomingMessage, OutgoingMessage
from shared.amqp.parking import copy_to
from shared.amqp.publisher import Publisher
from shared.contract.names import Names
from shared.runtime.loops import Stop

# The limit of one look, which bounds its memory.
MAX_PARKED_MESSAGES = 10_000
QUIET_SECONDS = 0.5
DUEBELL_HEADERS = ("duebell-", "x-death", "x-first-death", "x-last-death", "x-delivery-count")


@dataclass(frozen=True, slots=True)
class Parked:
    message: IncomingMessage

    @property
    def id(self) -> str:
        """A hash of message_id and body: message_ids of one batch begin alike, and a message that the broker parked
        itself may have none.
        """
        named = (self.message.message_id or "").encode() + b"\0" + self.message.body
        return hashlib.sha256(named).hexdigest()[:16]

    @property
    def reason(self) -> str:
        reason = self.message.headers.get("duebell-reason")
        if reason is None:
            deaths = self.message.headers.get("x-death") or [{}]
            return f"given up by the broker: {deaths[0].get('reason', 'unknown')}"
        return str(reason)

    def summary(self) -> dict[str, Any]:
        headers = self.message.headers
        parked_at = headers.get("duebell-parked-at")
        return {
            "id": self.id,
            "parked_at": parked_at if isinstance(parked_at, datetime) else None,
            "parked_by": headers.get("duebell-parked-by", "broker"),
            "type": self.message.type or headers.get("duebell-routing-key"),
            "job": self._job(),
            "reason": self.reason,
        }

    def details(self) -> dict[str, Any]:
        body = self.message.body.decode("utf-8", "replace")
        headers = {name: value for name, value in self.message.headers.items() if name != "duebell-errors"}
        properties = {
            name: getattr(self.message, name)
            for name in ("content_type", "content_encoding", "correlation_id", "reply_to", "timestamp", "app_id")
        }
        return {**self.summary(), **properties, "headers": headers, "bytes": len(self.message.body), "body": body}

    def original_message(self, names: Names) -> OutgoingMessage:
        """The message as it was, for the exchange it came from. An event goes to the delivery queue alone: other queues
        have it.
        """
        message, headers = self.message, self.message.headers
        deaths = headers.get("x-death") or [{}]
        from_queue = names.deliveries if headers.get("duebell-parked-by") == "delivery" else deaths[0].get("queue")
        if from_queue == names.deliveries:
            exchange, key = "", names.deliveries
        else:
            exchange = str(headers.get("duebell-exchange") or deaths[0].get("exchange") or names.commands)
            key = str(headers.get("duebell-routing-key") or (deaths[0].get("routing-keys") or [""])[0])
        kept = {name: value for name, value in headers.items() if not name.startswith(DUEBELL_HEADERS)}
        return copy_to(message, exchange, key, kept)

    def _job(self) -> str | None:
        try:
            content = orjson.loads(self.message.body)
        except orjson.JSONDecodeError:
            return None
        found = content.get("id") if isinstance(content, dict) else None
        return found[:200] if isinstance(found, str) else None


@dataclass(frozen=True, slots=True)
class Parking:
    inbox: Inbox
    publisher: Publisher

    async def look(self, limit: int) -> list[Parked]:
        """Take up to `limit` messages, the oldest first, until no more come for QUIET_SECONDS."""
        found: list[Parked] = []
        while len(found) < limit:
            batch: list[IncomingMessage] = []
            try:
                async with asyncio.timeout(QUIET_SECONDS):
                    batch = await self.inbox.next_batch(limit - len(found), 0.05, Stop())
            except TimeoutError:
                break
            found += (Parked(message) for message in batch)
        return found


@asynccontextmanager
async def parking(stores: Stores, limit: int, *, sends: bool = False) -> AsyncIterator[Parking]:
    """Take messages without acknowledging them. `sends` says that copies of them are to be published, too."""
    url = stores.amqp_address.get()
    needs = f"to read {stores.names.parked}" + (", and to publish to any exchange" if sends else "")
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
                broker.open_channel(prefetch=limit) as channel,
                Inbox.consuming(channel, stores.names.parked) as inbox,
                Publisher(outbound) as publisher,
            ):
                yield Parking(inbox, publisher)
        except BROKER_ERRORS as error:
            raise broker_failure(error, url, needs) from None


def choose(found: Sequence[Parked], wanted: Sequence[str]) -> list[Parked]:
    """Find messages by the beginnings of their ids. Raises Failure if one matches no message, BadUsage if several."""
    chosen: dict[str, Parked] = {}
    for beginning in wanted:
        fitting = [one for one in found if one.id.startswith(beginning)]
        if not fitting:
            raise Failure(f"{beginning!r} is not among the parked messages: see `duebell parked list`")
        if len(fitting) > 1:
            raise BadUsage(f"{beginning!r} names {len(fitting)} parked messages: write more of the id")
        chosen[fitting[0].id] = fitting[0]
    return list(chosen.values())
