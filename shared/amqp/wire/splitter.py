"""The byte stream from the broker, split in two: deliveries and confirms go to the parts of Duebell that wait for them,
and aiormq reads the rest (handshake, heartbeats, channels, declarations).

aiormq reads a frame in three steps, with a lock, a buffer and three waits, and starts a task for each message; and what
pamqp cannot decode ends the connection. Frames that are taken out here meet neither.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Protocol, SupportsIndex, cast

from aiormq.exceptions import InvalidFrameError, ProtocolSyntaxError

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
KINDS = frozenset((METHOD, HEADER, BODY, HEARTBEAT))
HEAD, END = 7, 0xCE

read_head = Struct(">BHI").unpack_from  # kind, channel, length
_method = Struct(">HH").pack

# What the payload of a method frame begins with: class and method.
TUNE = _method(10, 30)
CLOSINGS = (_method(20, 40), _method(20, 41))  # Channel.Close and Channel.CloseOk
RETURN, DELIVER, ACK, NACK = _method(60, 50), _method(60, 60), _method(60, 80), _method(60, 120)
METHOD_SIZE = 4

# The payload of a content header begins with class, weight, size of the body; flags and properties follow.
read_header_start = Struct(">HHQH").unpack_from
FLAGS = 12

# RabbitMQ's default. A broker may allow more, or anything: a frame is gathered before it is read, and the larger it is,
# the more often its beginning is copied.
MAX_FRAME_BYTES = 128 * 1024
# In the payload of Connection.Tune, after the number of channels.
_FRAME_MAX = HEAD + METHOD_SIZE + 2
_size = Struct(">I")

_HEARTBEAT_FRAME = b"\x08\x00\x00\x00\x00\x00\x00\xce"
_HEARTBEAT_SECONDS = 1.0


class Incomplete(Exception):
    """The rest of the frame, or of the message, has not arrived yet."""


def frame_end(data: bytes, start: int) -> int:
    """Returns the place after the frame that starts at `start`, all of which has arrived."""
    if len(data) < start + HEAD:
        raise Incomplete
    end: int = start + HEAD + read_head(data, start)[2] + 1
    if len(data) < end:
        raise Incomplete
    if data[end - 1] != END:
        raise InvalidFrameError("a frame does not end where it should")
    return end


class Taker(Protocol):
    """Takes frames of one channel out of the stream."""

    def take(self, data: bytes, start: int, /) -> int | None:
        """Returns the place after what was taken; None leaves the frame at `start` to aiormq. Raises Incomplete to be
        asked again with more bytes.
        """


class SplittingReader(asyncio.StreamReader):
    """The reader of one connection. aiormq finds in it what no taker has taken."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self._takers: dict[int, Taker] = {}  # by channel
        self._unfinished = b""
        self._clock = clock
        self._told_aiormq_at = 0.0
        self._socket: asyncio.Transport | None = None
        self._full: set[int] = set()

    def divert(self, channel: int, taker: Taker) -> None:
        """Until the broker has closed the channel, its frames are offered to the taker first."""
        self._takers[channel] = taker

    def set_transport(self, transport: asyncio.BaseTransport) -> None:
        super().set_transport(transport)
        self._socket = cast("asyncio.Transport", transport)

    def pause(self, channel: int) -> None:
        """Nothing more is read from the broker until `resume`, and TCP makes the broker wait. Everything else on the
        connection waits too: heartbeats, confirms, the news that a channel was closed.
        """
        self._full.add(channel)
        self._read_if_there_is_room()

    def resume(self, channel: int) -> None:
        if channel in self._full:
            self._full.remove(channel)
            self._read_if_there_is_room()

    def _read_if_there_is_room(self) -> None:
        if self._socket is None or self._socket.is_closing():
            return
        if self._full:
            self._socket.pause_reading()
        else:
            self._socket.resume_reading()

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        """The protocol calls this with whatever has arrived, which is bytes."""
        if left := self._split(bytes(data)):
            super().feed_data(left)
        if self._full:  # StreamReader resumes the transport by itself when aiormq has caught up
            self._read_if_there_is_room()

    def _split(self, data: bytes) -> bytes:
        """Every whole frame, except those that were taken."""
        if self.exception() is not None:
            return b""
        if self._unfinished:
            data = self._unfinished + data
        left: list[bytes] = []
        start = 0
        try:
            while start < len(data):
                start = self._next(data, start, left)
        except Incomplete:
            pass
        except ProtocolSyntaxError as error:  # aiormq meets it when it reads on, and ends the connection
            self.set_exception(error)
            left.append(data[start:])
        self._unfinished = data[start:]
        if start and not left:
            self._tell_aiormq_that_the_broker_lives(left)
        return b"".join(left)

    def _next(self, data: bytes, start: int, left: list[bytes]) -> int:
        """Returns where the frame, or the message, that starts there ends."""
        if len(data) < start + HEAD:
            raise Incomplete
        if data[start] not in KINDS:
            if data.startswith(b"AMQP", start):  # the broker speaks another version
                raise ProtocolSyntaxError("Unexpected AMQP protocol header")
            raise InvalidFrameError("not a frame")
        kind, channel, _ = read_head(data, start)
        if (taker := self._takers.get(channel)) is not None and (taken := taker.take(data, start)) is not None:
            return taken
        end = frame_end(data, start)
        frame = data[start:end]
        if kind == METHOD:
            if frame.startswith(CLOSINGS, HEAD):
                self._takers.pop(channel, None)
            elif frame.startswith(TUNE, HEAD):
                frame = _with_bounded_frames(frame)
        left.append(frame)
        return end

    def _tell_aiormq_that_the_broker_lives(self, left: list[bytes]) -> None:
        """aiormq gives up a connection on which it sees no frame for a while, and all that came was taken."""
        now = self._clock()
        if now - self._told_aiormq_at >= _HEARTBEAT_SECONDS:
            self._told_aiormq_at = now
            left.append(_HEARTBEAT_FRAME)


def _with_bounded_frames(tune: bytes) -> bytes:
    """What the broker offers in Connection.Tune, and no more than MAX_FRAME_BYTES: aiormq accepts what it finds there.
    0 is no limit.
    """
    offered = _size.unpack_from(tune, _FRAME_MAX)[0]
    accepted = min(offered or MAX_FRAME_BYTES, MAX_FRAME_BYTES)
    return tune[:_FRAME_MAX] + _size.pack(accepted) + tune[_FRAME_MAX + _size.size :]
