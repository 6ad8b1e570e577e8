"""Delayed messages as an application sends and hears them, byte for byte."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import aio_pika
import pamqp.header
from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel
from pamqp.commands import Basic

from shared.amqp.connection import Broker
from shared.amqp.content_header import PROPERTIES
from shared.amqp.message import IncomingMessage
from shared.amqp.topology import declare_delay_exchange
from tests.support.eventually import PATIENCE, eventually
from tests.support.raw_publishing import RawPublisher, a_raw_publisher
from tests.support.stores import Site


def properties(**values: object) -> bytes:
    """Flags and properties as a client library writes them."""
    return pamqp.header.ContentHeader(0, 0, Basic.Properties(**values)).marshal()[12:]  # type: ignore[arg-type]


@dataclass(slots=True)
class DelayedSender:
    """An application with an exchange of its own, a queue that is bound to it, and the delay exchange in front."""

    site: Site
    channel: AbstractChannel
    raw: RawPublisher
    exchange: str
    queue: str
    heard: list[IncomingMessage] = field(default_factory=list)
    heard_at: list[float] = field(default_factory=list)  # by time.time()

    @property
    def delay_exchange(self) -> str:
        return self.site.names.delay_exchange(self.exchange)

    @property
    def broker_sorts_headers(self) -> bool:
        """RabbitMQ does from version 3.13 on, whenever it delivers a message."""
        version = str(self.raw.underlay.connection.server_properties["version"])
        return tuple(int(part) for part in version.split(".")[:2]) >= (3, 13)

    async def send(
        self, body: bytes = b"x", key: str | bytes = "key", *, header: bytes | None = None, **props: object
    ) -> None:
        key = key.encode() if isinstance(key, str) else key
        await self.raw.send(self.delay_exchange, key, header if header is not None else properties(**props), body)

    def hear(self, message: IncomingMessage) -> None:
        self.heard_at.append(time.time())
        self.heard.append(message)

    async def hears(self, number: int, within: float = PATIENCE) -> list[IncomingMessage]:
        async def look() -> bool:
            assert len(self.heard) >= number, f"{len(self.heard)} of {number} messages so far"
            return True

        await eventually(look, within)
        return self.heard


@asynccontextmanager
async def a_delayed_sender(
    site: Site, queue_arguments: dict[str, object] | None = None, owner: str = ""
) -> AsyncIterator[DelayedSender]:
    """With an owner, the exchange has a name to which the roles of the services have rights."""
    name = f"{owner and owner + '.'}{site.prefix}orders-{uuid4().hex[:6]}"
    async with (
        await aio_pika.connect(site.amqp_url, timeout=PATIENCE) as connection,
        connection.channel() as channel,
        a_raw_publisher(site.amqp_url) as raw,
        Broker(site.amqp_url, name="test listener", names=site.names).connected() as broker,
        broker.open_channel() as listening,
    ):
        exchange = await channel.declare_exchange(name, ExchangeType.TOPIC, auto_delete=False)
        queue = await channel.declare_queue(f"{name}.q", arguments=queue_arguments)  # type: ignore[arg-type]
        await queue.bind(exchange, "#")
        await declare_delay_exchange(channel, site.names, name)
        sender = DelayedSender(site, channel, raw, name, queue.name)
        await listening.consume(queue.name, sender.hear, lambda: None, PATIENCE)
        try:
            yield sender
        finally:
            await channel.exchange_delete(site.names.delay_exchange(name))
            await channel.exchange_delete(name)
            await channel.queue_delete(queue.name)


def short_text_table(texts: dict[str, bytes], name: bytes, kind: bytes, value: bytes) -> bytes:
    """A content header as bytes: short texts of any bytes, and one header. A text or bytes get their length."""
    sized = len(value).to_bytes(4, "big") + value if kind in {b"S", b"x"} else value
    table = bytes([len(name)]) + name + kind + sized
    flags, parts = 1 << 13, [len(table).to_bytes(4, "big") + table]
    for place, text in enumerate(PROPERTIES):
        if text in texts:
            flags |= 1 << (15 - place)
            parts.append(bytes([len(texts[text])]) + texts[text])
    return flags.to_bytes(2, "big") + b"".join(parts)


def table_header(name: bytes, kind: bytes, value: bytes) -> bytes:
    """A content header that has one header and nothing else."""
    return short_text_table({}, name, kind, value)
