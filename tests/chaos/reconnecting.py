"""A connection of the application to the broker that connects again after every loss."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import cycle

import aio_pika
from aio_pika.abc import AbstractChannel

from shared.amqp.connection import BROKER_ERRORS, close_quietly, urls_of_hosts
from shared.amqp.wire import lost_connections_as_errors

AGAIN_SECONDS = 0.3
CONNECT_SECONDS = 5.0

Prepare = Callable[[AbstractChannel], Awaitable[None]]


class ReconnectingConnection:
    """Connects while `run()` runs as a task, to the hosts in turn. Each new channel is passed to `prepare`."""

    def __init__(self, url: str, name: str, prepare: Prepare) -> None:
        self._urls = cycle(urls_of_hosts(url))
        self._name = name
        self._prepare = prepare
        self._allowed = asyncio.Event()
        self._allowed.set()
        self._lost = asyncio.Event()

    def disconnect(self) -> None:
        """Close the connection, and open none until `reconnect()`."""
        self._allowed.clear()
        self._lost.set()

    def reconnect(self) -> None:
        self._allowed.set()

    async def run(self) -> None:
        """Keep a connection open until the task is cancelled."""
        while True:
            await self._allowed.wait()
            self._lost.clear()
            with suppress(*BROKER_ERRORS), lost_connections_as_errors():
                await self._hold()
            await asyncio.sleep(AGAIN_SECONDS)

    async def _hold(self) -> None:
        async with asyncio.timeout(CONNECT_SECONDS):
            connection = await aio_pika.connect(next(self._urls), client_properties={"connection_name": self._name})
        connection.close_callbacks.add(lambda *_: self._lost.set())
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
                channel.close_callbacks.add(lambda *_: self._lost.set())
                await self._prepare(channel)
            await self._lost.wait()
        finally:
            await close_quietly(connection)
