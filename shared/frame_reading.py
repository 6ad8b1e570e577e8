"""Frames from the broker, as many at a time as have come.

aiormq reads a frame in three steps, with a lock, a buffer and three waits, and hands it to its channel by itself: a
message is three of them, and that was most of what a consumer did. Here whatever has come is read at once and cut into
frames, and messages for an inbox (`shared/message_reading.py`) are handed on as what they are: all that have come in a
row, as if they were one frame. It takes the place of aiormq's own reader for all connections of the process.
"""

import asyncio
from collections import deque
from contextlib import suppress
from typing import cast

import aiormq.connection
import pamqp.frame
from aiormq.connection import FrameReceiver, ReceivedFrame
from aiormq.exceptions import AMQPConnectionError, InvalidFrameError, ProtocolSyntaxError
from pamqp.commands import Connection
from pamqp.exceptions import PAMQPException
from pamqp.frame import FrameTypes

from shared.message_reading import END, Incomplete, frame_end, is_to_us, read_message
from shared.received import Received

READ_BYTES = 256 * 1024
# What has come of a message waits for the rest of it, up to this size; more of it is cut into frames as they come.
MOST_OF_A_MESSAGE = 32 * 1024
# RabbitMQ's default. A broker may allow more, or anything: a frame is gathered before it is read, and the larger it is,
# the more often its beginning is copied.
LARGEST_FRAME = 128 * 1024


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
        start = 0
        with suppress(Incomplete):
            while start < len(data):
                start = self._read_next(data, start)
        self._rest = data[start:]

    def _read_next(self, data: bytes, start: int) -> int:
        """The frame or the message that starts there. Returns where it ends."""
        if is_to_us(data, start):
            try:
                message, channel, end = read_message(data, start)
            except Incomplete:
                if len(data) - start < MOST_OF_A_MESSAGE:
                    raise
            except ValueError:
                pass  # unusual: frame by frame, then
            else:
                self._add(message, channel)
                return end
        end = frame_end(data, start)
        if data[end - 1] != END:
            raise InvalidFrameError("a frame does not end where it should")
        self._frames.append(_decoded(data[start:end]))
        return end

    def _add(self, message: Received, channel: int) -> None:
        """To those before it, if they are of the same channel."""
        if self._frames:
            _, last_channel, last = self._frames[-1]
            if last_channel == channel and isinstance(last, list):
                last.append(message)
                return
        self._frames.append((0, channel, cast("FrameTypes", [message])))


def _decoded(frame: bytes) -> ReceivedFrame:
    try:
        size, channel, decoded = pamqp.frame.unmarshal(frame)
    except PAMQPException as error:
        raise InvalidFrameError(str(error)) from error
    if isinstance(decoded, Connection.Tune):
        # What the broker offers; aiormq accepts what it finds here. 0 is no limit.
        decoded.frame_max = min(decoded.frame_max or LARGEST_FRAME, LARGEST_FRAME)
    return size, channel, decoded


def read_frames_quickly() -> None:
    """Once per process, before connecting."""
    aiormq.connection.FrameReceiver = QuickFrameReceiver  # type: ignore[misc]
