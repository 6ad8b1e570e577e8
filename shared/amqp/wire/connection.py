"""Connections and channels of aio-pika that split the byte stream from the broker: takers of Duebell get deliveries and
confirms, and aiormq reads the other frames (handshake, heartbeats, channels, declarations). The splitting reader enters
through aiormq's `transport_factory`.

aiormq reads a frame in three steps, with a lock, a buffer and three waits, and starts a task for each message; and a
frame that pamqp cannot decode ends the connection. Frames that a taker takes avoid both.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any, Protocol, SupportsIndex, cast

import aio_pika
import aiormq.channel
from aiormq.abc import DeliveredMessage
from aiormq.connection import TransportFactory
from aiormq.exceptions import AMQPConnectionError, InvalidFrameError, ProtocolSyntaxError
from yarl import URL

from shared.amqp.message import IncomingMessage
from shared.amqp.wire.deliveries import (
    CLOSINGS,
    HEAD,
    KINDS,
    METHOD,
    METHOD_SIZE,
    TUNE,
    Deliveries,
    Incomplete,
    frame_end,
    read_head,
)
from shared.amqp.wire.publishing import Confirms

CONSUMER_TAG = "duebell"

# RabbitMQ's default. A broker may offer more, or no limit. The splitter collects a frame before it reads it, and copies
# its beginning with each chunk that arrives, so large frames cost more.
MAX_FRAME_BYTES = 128 * 1024
# The place of frame_max in Connection.Tune, after the number of channels.
_FRAME_MAX = HEAD + METHOD_SIZE + 2
_size = Struct(">I")

_HEARTBEAT_FRAME = b"\x08\x00\x00\x00\x00\x00\x00\xce"
_HEARTBEAT_SECONDS = 1.0


@contextmanager
def lost_connections_as_errors() -> Iterator[None]:
    """Wrap every wait for the broker. For a connection that has just been lost, aio-pika and aiormq raise a bare
    RuntimeError, or a CancelledError although no task was cancelled, which would end the waiting task unlogged.
    """
    try:
        yield
    except RuntimeError as error:
        raise ConnectionError(str(error)) from error
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) and task.cancelling():
            raise
        raise ConnectionError("the broker stopped answering") from None


class Taker(Protocol):
    """Takes frames of one channel out of the byte stream."""

    def take(self, data: bytes, start: int, /) -> int | None:
        """Take the frame at `start`, or several, and return the place after them. Return None to leave the frame to
        aiormq. Raise Incomplete to be called again when more bytes have arrived.
        """


class SplittingReader(asyncio.StreamReader):
    """The stream reader of one connection. aiormq reads from it the frames that no taker has taken."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self._takers: dict[int, Taker] = {}  # by channel
        self._unfinished = b""
        self._clock = clock
        self._heartbeat_at = 0.0
        self._socket: asyncio.Transport | None = None
        self._full_channels: set[int] = set()

    def divert(self, channel: int, taker: Taker) -> None:
        """Offer the frames of the channel to the taker first, until the channel is closed."""
        self._takers[channel] = taker

    def set_transport(self, transport: asyncio.BaseTransport) -> None:
        super().set_transport(transport)
        self._socket = cast("asyncio.Transport", transport)

    def pause(self, channel: int) -> None:
        """Stop reading from the broker until `resume`; TCP then makes the broker wait. All frames of the connection
        wait too: heartbeats, confirms, Channel.Close.
        """
        self._full_channels.add(channel)
        self._read_if_there_is_room()

    def resume(self, channel: int) -> None:
        if channel in self._full_channels:
            self._full_channels.remove(channel)
            self._read_if_there_is_room()

    def _read_if_there_is_room(self) -> None:
        if self._socket is None or self._socket.is_closing():
            return
        if self._full_channels:
            self._socket.pause_reading()
        else:
            self._socket.resume_reading()

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        """Split the bytes that have arrived. asyncio calls this for each chunk."""
        if left := self._split(bytes(data)):
            super().feed_data(left)
        if self._full_channels:  # StreamReader resumes the transport when aiormq has read its buffer
            self._read_if_there_is_room()

    def _split(self, data: bytes) -> bytes:
        """Return the complete frames that no taker has taken. Keep an unfinished one for the next chunk."""
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
        except ProtocolSyntaxError as error:  # aiormq gets it at its next read, and ends the connection
            self.set_exception(error)
            left.append(data[start:])
        self._unfinished = data[start:]
        if start and not left:
            self._add_heartbeat(left)
        return b"".join(left)

    def _next(self, data: bytes, start: int, left: list[bytes]) -> int:
        """Take the frame or message that starts there, or append the frame to `left`. Return the place after it."""
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

    def _add_heartbeat(self, left: list[bytes]) -> None:
        """Pass aiormq a heartbeat if takers took all frames: it closes a connection that is silent for long."""
        now = self._clock()
        if now - self._heartbeat_at >= _HEARTBEAT_SECONDS:
            self._heartbeat_at = now
            left.append(_HEARTBEAT_FRAME)


def _with_bounded_frames(tune: bytes) -> bytes:
    """Lower frame_max in Connection.Tune to MAX_FRAME_BYTES: aiormq accepts what it reads there. 0 means no limit."""
    offered = _size.unpack_from(tune, _FRAME_MAX)[0]
    accepted = min(offered or MAX_FRAME_BYTES, MAX_FRAME_BYTES)
    return tune[:_FRAME_MAX] + _size.pack(accepted) + tune[_FRAME_MAX + _size.size :]


class SplittingTransport(TransportFactory):
    """Opens the connection as aiormq would, but with a SplittingReader."""

    def __init__(self, reader: SplittingReader) -> None:
        self._reader = reader

    async def create(self, url: URL, **kwargs: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:  # noqa: ANN401
        provider = kwargs.pop("ssl_context_provider")
        context = await provider.get_context() if url.scheme == "amqps" else None
        loop, host, port = asyncio.get_running_loop(), url.host or "", url.port or 0
        protocol = asyncio.StreamReaderProtocol(self._reader, loop=loop)
        try:
            transport, _ = await loop.create_connection(lambda: protocol, host, port, ssl=context, **kwargs)
        except OSError as error:
            raise AMQPConnectionError(*error.args) from error
        return self._reader, asyncio.StreamWriter(transport, protocol, self._reader, loop)


class WireChannel(aio_pika.Channel):
    """A channel. After declarations it serves either one consumer or publishing, not both."""

    def __init__(self, connection: "WireConnection", **kwargs: Any) -> None:  # noqa: ANN401 - as aio-pika's
        super().__init__(connection, **kwargs)
        self._reader = connection.reader

    async def consume(
        self, queue: str, on_message: Callable[[IncomingMessage], None], on_cancel: Callable[[], None], timeout: float
    ) -> None:
        """Consume the queue: call `on_message` for every message until the channel closes. Call `on_cancel` if the
        broker ends the consumer, most likely because the queue was deleted.
        """
        with lost_connections_as_errors():
            channel = await self._underlay()
            channel.on_consumer_cancel_callbacks.add(lambda *_: on_cancel())
            self._reader.divert(channel.number, Deliveries(on_message))
            await channel.basic_consume(queue, _never_called, consumer_tag=CONSUMER_TAG, timeout=timeout)

    async def acknowledge(self, tag: int, *, multiple: bool = False) -> None:
        """Acknowledge the delivery with this tag, or with `multiple` all deliveries of the channel up to it."""
        with lost_connections_as_errors():
            await (await self._underlay()).basic_ack(tag, multiple=multiple)

    def pause(self) -> None:
        """Stop reading from the whole connection until `resume`."""
        self._reader.pause(self.number or 0)

    def resume(self) -> None:
        self._reader.resume(self.number or 0)

    async def confirms(self) -> Confirms:
        """Turn this into a publishing channel. From now on publish only through the returned object."""
        channel = await self._underlay()
        confirms = Confirms(channel)
        self._reader.divert(channel.number, confirms)
        return confirms

    async def _underlay(self) -> aiormq.channel.Channel:
        return cast("aiormq.channel.Channel", await self.get_underlay_channel())


class WireConnection(aio_pika.Connection):
    """A connection with a SplittingReader. aio-pika passes `kwargs`, with the transport factory, to aiormq."""

    CHANNEL_CLASS = WireChannel

    def __init__(self, url: str, name: str) -> None:
        super().__init__(URL(url), client_properties={"connection_name": name})
        self.reader = SplittingReader()
        self.kwargs["transport_factory"] = SplittingTransport(self.reader)

    def channel(self, *args: Any, **kwargs: Any) -> WireChannel:  # noqa: ANN401 - as aio-pika's
        return cast("WireChannel", super().channel(*args, **kwargs))


async def connect(url: str, name: str) -> WireConnection:
    """Open a connection. The broker shows it under `name`."""
    connection = WireConnection(url, name)
    await connection.connect()
    return connection


async def _never_called(_: DeliveredMessage) -> None:
    """Satisfies basic_consume, which requires a callback. The splitter takes each message before aiormq can call it."""
