"""Messages whose AMQP properties no client library would write: built byte by byte."""

import json
import struct
from dataclasses import dataclass
from typing import cast

import aio_pika
import pamqp.frame
from aiormq.abc import ChannelFrame
from aiormq.channel import Channel
from pamqp import commands
from pamqp.body import ContentBody

from tests.support.stores import Site

BASIC_CLASS = 60
FRAME_HEADER, FRAME_END = 2, b"\xce"


@dataclass(frozen=True, slots=True)
class RawProperties:
    flags: int
    data: bytes


def timestamp_far_away() -> RawProperties:
    return RawProperties(1 << 6, struct.pack(">Q", 2**63))


def type_that_is_not_utf8() -> RawProperties:
    return RawProperties(1 << 5, b"\x03\xff\xfe\xfd")


async def send_with_properties(site: Site, content: object, properties: RawProperties) -> None:
    body = json.dumps(content).encode()
    async with (
        await aio_pika.connect(site.amqp_url, timeout=10) as connection,
        connection.channel(publisher_confirms=False) as channel,
    ):
        underlay = cast("Channel", await channel.get_underlay_channel())
        publish = commands.Basic.Publish(exchange=site.names.commands, routing_key="schedule.request")
        header = struct.pack(">HHQH", BASIC_CLASS, 0, len(body), properties.flags) + properties.data
        frames = (
            pamqp.frame.marshal(publish, underlay.number)
            + struct.pack(">BHI", FRAME_HEADER, underlay.number, len(header))
            + header
            + FRAME_END
            + pamqp.frame.marshal(ContentBody(body), underlay.number)
        )
        await underlay.write_queue.put(ChannelFrame(payload=frames, should_close=False, drain_future=None))
        # Any question that the broker answers: by then it has read what came before.
        await channel.declare_queue(site.names.inbox, passive=True)
