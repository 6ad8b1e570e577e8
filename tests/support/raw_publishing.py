"""Messages as bytes on the wire, with properties and routing keys that no client library would write."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import aio_pika
import pamqp.frame
from aio_pika.abc import AbstractChannel
from aiormq.abc import ChannelFrame
from aiormq.channel import Channel
from pamqp.body import ContentBody

from tests.support.eventually import PATIENCE

BASIC_CLASS, PUBLISH = 60, 40
METHOD_FRAME, HEADER_FRAME, FRAME_END = 1, 2, b"\xce"


@dataclass(frozen=True, slots=True)
class RawPublisher:
    channel: AbstractChannel
    underlay: Channel

    async def send(self, exchange: str, key: bytes, properties: bytes, body: bytes) -> None:
        """`properties` are flags and values, as AMQP 0-9-1 (4.2.6.1) writes them."""
        number, size = self.underlay.number, self.underlay.max_content_size
        publish = struct.pack(">HHH", BASIC_CLASS, PUBLISH, 0) + short(exchange.encode()) + short(key) + b"\0"
        header = struct.pack(">HHQ", BASIC_CLASS, 0, len(body)) + properties
        frames = [
            _frame(METHOD_FRAME, number, publish),
            _frame(HEADER_FRAME, number, header),
            *(
                pamqp.frame.marshal(ContentBody(body[start : start + size]), number)
                for start in range(0, len(body), size)
            ),
        ]
        # Nothing takes frames from the queue once the broker has closed the connection.
        assert not self.underlay.is_closed, "the broker has closed the connection: its log says why"
        async with asyncio.timeout(PATIENCE):
            await self.underlay.write_queue.put(
                ChannelFrame(payload=b"".join(frames), should_close=False, drain_future=None)
            )

    async def is_through(self) -> None:
        """Wait for an answer, which shows that the broker has read everything sent before. To ask this, no user needs a
        right.
        """
        await self.channel.set_qos(prefetch_count=1, timeout=PATIENCE)


def short(text: bytes) -> bytes:
    """A short string: its length in one byte, and its bytes, whatever they are."""
    return bytes([len(text)]) + text


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + FRAME_END


@asynccontextmanager
async def a_raw_publisher(amqp_url: str) -> AsyncIterator[RawPublisher]:
    async with (
        await aio_pika.connect(amqp_url, timeout=PATIENCE) as connection,
        connection.channel(publisher_confirms=False) as channel,
    ):
        underlay = cast("Channel", await channel.get_underlay_channel())
        publisher = RawPublisher(channel, underlay)
        yield publisher
        await publisher.is_through()
