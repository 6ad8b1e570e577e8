"""Connections and channels of aio-pika whose deliveries and confirms are taken out of the byte stream, through aiormq's
`transport_factory`.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import aio_pika
import aiormq.channel
from aiormq.abc import DeliveredMessage
from aiormq.connection import TransportFactory
from aiormq.exceptions import AMQPConnectionError
from yarl import URL

from shared.amqp.message import IncomingMessage
from shared.amqp.wire.deliveries import Deliveries
from shared.amqp.wire.publishing import Confirms
from shared.amqp.wire.splitter import SplittingReader

CONSUMER_TAG = "duebell"


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


class SplittingTransport(TransportFactory):
    """Opens the connection as aiormq would, with a reader of our own."""

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
    """A channel for declarations, and then either for one consumer or for publishing."""

    def __init__(self, connection: "WireConnection", **kwargs: Any) -> None:  # noqa: ANN401 - as aio-pika's
        super().__init__(connection, **kwargs)
        self._reader = connection.reader

    async def consume(
        self, queue: str, on_message: Callable[[IncomingMessage], None], on_cancel: Callable[[], None], timeout: float
    ) -> None:
        """Until the channel closes, `on_message` is called for every message; `on_cancel` if the broker ends the
        consumer, most likely because the queue was deleted.
        """
        with lost_connections_as_errors():
            channel = await self._underlay()
            channel.on_consumer_cancel_callbacks.add(lambda *_: on_cancel())
            self._reader.divert(channel.number, Deliveries(on_message))
            await channel.basic_consume(queue, _never_called, consumer_tag=CONSUMER_TAG, timeout=timeout)

    async def acknowledge(self, tag: int, *, multiple: bool = False) -> None:
        """`multiple`: everything that was delivered on this channel up to this tag."""
        with lost_connections_as_errors():
            await (await self._underlay()).basic_ack(tag, multiple=multiple)

    def pause(self) -> None:
        """Nothing more is read on the whole connection until `resume`."""
        self._reader.pause(self.number or 0)

    def resume(self) -> None:
        self._reader.resume(self.number or 0)

    async def confirms(self) -> Confirms:
        """From now on the channel publishes through what this returns, and in no other way."""
        channel = await self._underlay()
        confirms = Confirms(channel)
        self._reader.divert(channel.number, confirms)
        return confirms

    async def _underlay(self) -> aiormq.channel.Channel:
        return cast("aiormq.channel.Channel", await self.get_underlay_channel())


class WireConnection(aio_pika.Connection):
    """aio-pika has no argument for the transport factory; what `kwargs` holds is passed on to aiormq."""

    CHANNEL_CLASS = WireChannel

    def __init__(self, url: str, name: str) -> None:
        super().__init__(URL(url), client_properties={"connection_name": name})
        self.reader = SplittingReader()
        self.kwargs["transport_factory"] = SplittingTransport(self.reader)

    def channel(self, *args: Any, **kwargs: Any) -> WireChannel:  # noqa: ANN401 - as aio-pika's
        return cast("WireChannel", super().channel(*args, **kwargs))


async def connect(url: str, name: str) -> WireConnection:
    """`name` is what the broker shows for the connection."""
    connection = WireConnection(url, name)
    await connection.connect()
    return connection


async def _never_called(_: DeliveredMessage) -> None:
    """Consuming asks for a callback. Messages are taken out of the stream before aiormq could call it."""
