"""Frames from the broker, as many at a time as have come.

aiormq reads a frame in three steps, with a lock, a buffer and three waits, and pamqp decodes each argument of it by
name and type: for a message that is three frames, and most of what a consumer does. Here whatever has come is read at
once and cut into frames, and the three kinds that come with every message, Basic.Deliver, its header and its body, are
decoded by hand. All others go to pamqp. It takes the place of aiormq's own for all connections of the process.
"""

import asyncio
from collections import deque
from contextlib import suppress
from struct import Struct

import aiormq.connection
import pamqp.frame
from aiormq.connection import FrameReceiver, ReceivedFrame
from aiormq.exceptions import AMQPConnectionError, InvalidFrameError, ProtocolSyntaxError
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.exceptions import PAMQPException

from shared.header_reading import read_content_header

READ_BYTES = 256 * 1024
HEAD, END = 7, 0xCE
METHOD, HEADER, BODY = 1, 2, 3
DELIVER = (60, 60)

_head = Struct(">BHI").unpack_from
_method = Struct(">HH").unpack_from
_tag_and_flag = Struct(">QB").unpack_from


class QuickFrameReceiver(FrameReceiver):
    """What was read and not yet asked for is bounded by one read."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__(reader)
        self._rest = b""
        self._frames: deque[ReceivedFrame] = deque()

    async def get_frame(self) -> ReceivedFrame:
        while not self._frames:
            self._cut(await self._read())
        return self._frames.popleft()

    async def _read(self) -> bytes:
        if self.reader.at_eof():
            raise StopAsyncIteration
        try:
            data = await self.reader.read(READ_BYTES)
        except OSError as error:
            raise AMQPConnectionError(f"Server communication error: {error!r}") from error
        if not data:
            raise AMQPConnectionError("Server connection unexpectedly closed")
        return data

    def _cut(self, data: bytes) -> None:
        """Every whole frame of it; the start of another one is kept."""
        if self._rest:
            data = self._rest + data
        if not self.started and data.startswith(b"AMQP"):
            raise ProtocolSyntaxError("Unexpected AMQP protocol header")
        self.started = True
        start, size = 0, len(data)
        while size - start >= HEAD:
            kind, channel, length = _head(data, start)
            end = start + HEAD + length + 1
            if end > size:
                break
            if data[end - 1] != END:
                raise InvalidFrameError("a frame does not end where it should")
            self._frames.append(_decoded(kind, channel, data[start:end]))
            start = end
        self._rest = data[start:]


def _decoded(kind: int, channel: int, frame: bytes) -> ReceivedFrame:
    if kind == BODY:
        return len(frame), channel, ContentBody(frame[HEAD:-1])
    with suppress(ValueError):  # a name in some other alphabet, say: pamqp knows what to make of it
        if kind == HEADER:
            return len(frame), channel, read_content_header(frame, HEAD)
        if kind == METHOD and _method(frame, HEAD) == DELIVER:
            return len(frame), channel, _deliver(frame)
    try:
        return pamqp.frame.unmarshal(frame)
    except PAMQPException as error:
        raise InvalidFrameError(str(error)) from error


def _deliver(frame: bytes) -> Basic.Deliver:
    consumer_tag, place = _short_string(frame, HEAD + 4)
    tag, redelivered = _tag_and_flag(frame, place)
    exchange, place = _short_string(frame, place + 9)
    routing_key, _ = _short_string(frame, place)
    return Basic.Deliver(consumer_tag, tag, bool(redelivered), exchange, routing_key)


def _short_string(frame: bytes, place: int) -> tuple[str, int]:
    end = place + 1 + frame[place]
    return frame[place + 1 : end].decode(), end


def read_frames_quickly() -> None:
    """Once per process, before connecting."""
    aiormq.connection.FrameReceiver = QuickFrameReceiver  # type: ignore[misc]
