"""The connection of a process to RabbitMQ. A task keeps it up, and declares the topology before others use it.

Duebell reconnects by itself, without aio-pika's robust connection: everything that belonged to a lost connection
(channels, consumers, delivery tags) is gone, and its users start over. No state is half restored, and an outage is one
log line per try.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from urllib.parse import parse_qsl, unquote

from aio_pika.abc import AbstractChannel, AbstractConnection
from aiormq.exceptions import AMQPError, ChannelAccessRefused, ChannelInvalidStateError

from shared.amqp import wire
from shared.amqp.topology import Kind, declare_passively, declare_topology, find_topology
from shared.amqp.wire import WireChannel, WireConnection, lost_connections_as_errors
from shared.contract.names import Names
from shared.runtime.addresses import parse_address
from shared.runtime.backoff import Backoff
from shared.runtime.logs import get_log
from shared.runtime.loops import cancel_and_wait, first_of, mark_turn, waiting_outside

CONNECT_TIMEOUT = 10.0
# With several hosts, each has a share of its own: one that accepts the connection and says nothing is left.
CONNECT_TIMEOUT_OF_EACH = 5.0
CHANNEL_TIMEOUT = 10.0
CLOSE_TIMEOUT = 3.0
HEARTBEAT_SECONDS = 10
# A node that is frozen is left for another one sooner.
HEARTBEAT_SECONDS_OF_EACH = 5
# So long a node may block publishers, in a memory or disk alarm, before another one is tried.
MAX_BLOCKED_SECONDS = 30.0
# How often to look whether the node blocks publishers.
LOOK_SECONDS = 1.0

# What a call raises when the broker is lost or stalled, if it is wrapped in `lost_connections_as_errors`.
BROKER_ERRORS = (AMQPError, ChannelInvalidStateError, OSError, TimeoutError)


class Broker:
    """Keeps one connection up. Use `async with Broker(...).connected()`, then `open_channel` for each channel."""

    def __init__(self, url: str, *, name: str, names: Names, max_blocked_seconds: float = MAX_BLOCKED_SECONDS) -> None:
        self._urls = urls_of_hosts(url)
        self._host = 0  # the place in `_urls` of the host that is connected, or tried
        self._name = name
        self.names = names
        self._max_blocked_seconds = max_blocked_seconds
        self._connection: WireConnection | None = None
        self._up = asyncio.Event()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator["Broker"]:
        """Keep the connection up until the block ends. The block begins at once, before there is a connection; if the
        task that keeps it up dies, the block is cancelled.
        """
        async with asyncio.TaskGroup() as tasks:
            keeper = tasks.create_task(self._keep_connected(), name=f"broker {self._name}")
            try:
                yield self
            finally:
                await cancel_and_wait(keeper)

    @property
    def is_up(self) -> bool:
        return self._up.is_set()

    async def wait_until_up(self) -> None:
        with waiting_outside():
            await self._up.wait()

    async def wait_until_publishable(self) -> None:
        """Wait until the connection is up and the broker does not block it, as it does in a memory or disk alarm."""
        while True:
            mark_turn()
            connection = await self._wait_for_connection()
            if connection.transport is None:
                raise ConnectionError("the broker connection was lost")
            with suppress(TimeoutError):
                # ready() never ends if the connection dies while it is blocked, so check again every second.
                async with asyncio.timeout(LOOK_SECONDS):
                    await connection.transport.ready()
                return

    @asynccontextmanager
    async def open_channel(self, *, prefetch: int | None = None) -> AsyncIterator[WireChannel]:
        """Wait for the connection, and open a channel on it. The channel confirms publishes and raises for returns."""
        async with _channel_of(await self._wait_for_connection()) as channel:
            if prefetch is not None:
                with lost_connections_as_errors():
                    async with asyncio.timeout(CHANNEL_TIMEOUT):
                        await channel.set_qos(prefetch_count=prefetch)
            yield channel

    async def redeclare(self) -> None:
        """Declare the topology again, in case an exchange or a queue was deleted. Raises what the broker raises."""
        await self._ensure_topology(await self._wait_for_connection())

    async def _wait_for_connection(self) -> WireConnection:
        await self.wait_until_up()
        if self._connection is None:  # lost while this task was waking up
            raise ConnectionError("the broker connection was lost")
        return self._connection

    async def _ensure_topology(self, connection: WireConnection) -> None:
        """Declare the topology. If the user has no right to, check that it exists."""
        with lost_connections_as_errors():
            async with asyncio.timeout(CHANNEL_TIMEOUT):
                try:
                    async with _channel_of(connection) as channel:
                        await declare_topology(channel, self.names)
                except ChannelAccessRefused:

                    async def look(name: str, kind: Kind) -> None:
                        async with _channel_of(connection) as channel:
                            await declare_passively(channel, name, kind)

                    await find_topology(look, self.names)

    async def _keep_connected(self) -> None:
        backoff = Backoff(first=0.5)
        while True:
            try:
                with lost_connections_as_errors():
                    await self._connect_until_lost(backoff)
                problem = "the connection was closed"
            except Exception as error:  # noqa: BLE001 - any error is logged and retried
                problem = " ".join(f"{type(error).__name__}: {error}".split())
            # The pause between two tries of one host grows as usual; meanwhile the other hosts are tried.
            pause = backoff.next_pause() / len(self._urls)
            get_log().warning(
                "broker_not_ready",
                problem=f"cannot use the broker at AMQP_URL: {problem}",
                connection=self._name,
                host=host_of(self._urls[self._host]),
                retry_in_seconds=round(pause, 1),
            )
            self._host = (self._host + 1) % len(self._urls)
            await asyncio.sleep(pause)

    async def _connect_until_lost(self, backoff: Backoff) -> None:
        url = self._urls[self._host]
        async with asyncio.timeout(CONNECT_TIMEOUT if len(self._urls) == 1 else CONNECT_TIMEOUT_OF_EACH):
            connection = await wire.connect(url, self._name)
        lost: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        connection.close_callbacks.add(lambda _, error: None if lost.done() else lost.set_result(error))
        try:
            self._connection = connection
            await self._ensure_topology(connection)
            self._up.set()
            backoff.reset()
            get_log().info("broker_connected", connection=self._name, host=host_of(url))
            if len(self._urls) > 1:
                await self._wait_until_lost_or_blocked(connection, lost)
            if (error := await lost) is not None:
                raise ConnectionError(str(error))
        finally:
            self._up.clear()
            self._connection = None
            await close_quietly(connection)

    async def _wait_until_lost_or_blocked(
        self, connection: WireConnection, lost: "asyncio.Future[BaseException | None]"
    ) -> None:
        """Return when the connection is lost. Raise ConnectionError if the node blocks publishers for long: another one
        may not.
        """
        while connection.transport is not None and not lost.done():
            try:
                async with asyncio.timeout(self._max_blocked_seconds):
                    await first_of(connection.transport.ready(), asyncio.wait({lost}))
            except TimeoutError:
                raise ConnectionError("it blocks publishers") from None
            await asyncio.wait({lost}, timeout=LOOK_SECONDS)


@asynccontextmanager
async def _channel_of(connection: WireConnection) -> AsyncIterator[WireChannel]:
    with lost_connections_as_errors():
        channel = connection.channel(publisher_confirms=True, on_return_raises=True)
    try:
        with lost_connections_as_errors():
            async with asyncio.timeout(CHANNEL_TIMEOUT):
                await channel.initialize()
        yield channel
    finally:
        await close_quietly(channel)


async def close_quietly(resource: AbstractChannel | AbstractConnection) -> None:
    """Close a channel or a connection that may be closed already, within a timeout, and ignore errors of the broker."""
    with suppress(*BROKER_ERRORS), lost_connections_as_errors():
        async with asyncio.timeout(CLOSE_TIMEOUT):
            await resource.close()


def urls_of_hosts(url: str) -> list[str]:
    """Return the URL of each host that AMQP_URL names. Each has a heartbeat, by which a frozen node is noticed after
    about three of them; aiormq's default would take three minutes.
    """
    address = parse_address(url)
    if "heartbeat" not in dict(parse_qsl(address.query)):
        seconds = HEARTBEAT_SECONDS if len(address.hosts) == 1 else HEARTBEAT_SECONDS_OF_EACH
        query = "&".join(filter(None, [address.query, f"heartbeat={seconds}"]))
        address = replace(address, query=query)
    return [str(address.with_host(host)) for host in address.hosts]


def host_of(url: str) -> str:
    """Return the host and port of the URL of one host, without its password."""
    return parse_address(url).hosts[0]


def virtual_host_of(url: str) -> str:
    """Return the virtual host that AMQP_URL names. Without a path it is the default one."""
    return unquote(parse_address(url).path.removeprefix("/")) or "/"


async def connect_to_any(url: str, name: str, timeout: float) -> WireConnection:
    """Connect to the first host of AMQP_URL that answers within the timeout. Raises the error of the last one."""
    *others, last = urls_of_hosts(url)
    for one in others:
        with suppress(*BROKER_ERRORS), lost_connections_as_errors():
            async with asyncio.timeout(timeout):
                return await wire.connect(one, name)
    with lost_connections_as_errors():
        async with asyncio.timeout(timeout):
            return await wire.connect(last, name)
