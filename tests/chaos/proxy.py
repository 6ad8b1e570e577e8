"""A TCP proxy between a service and a store that can be told to behave badly: cut every connection, pass nothing on,
swallow what the store answers, delay, or write byte by byte. What was held back while it stalled is passed on
afterwards; what was swallowed is gone, so those connections are cut in the end, as a network would lose them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto

CHUNK = 64 * 1024
CONNECT_SECONDS = 5.0
DELAY_SECONDS = 0.15


class Manner(Enum):
    FAITHFUL = auto()
    STALLING = auto()
    ONE_WAY = auto()
    DELAYING = auto()
    DRIPPING = auto()


class Proxy:
    """Listens on a port of its own for as long as the block of `running` lasts."""

    def __init__(self, host: str, port: int) -> None:
        self.port = 0
        self._to = (host, port)
        self._manner = Manner.FAITHFUL
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._swallowed = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self._flowing.set()
            self.cut()
            await asyncio.sleep(0)

    def behave(self, manner: Manner) -> None:
        if manner is not Manner.ONE_WAY and self._swallowed:
            self.cut()
        self._manner = manner
        if manner is Manner.STALLING:
            self._flowing.clear()
        else:
            self._flowing.set()

    def cut(self) -> None:
        """No goodbye: the other side gets a reset, as far as the kernel sends one."""
        self._swallowed = False
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CONNECT_SECONDS):
                store_reader, store_writer = await asyncio.open_connection(*self._to)
            self._writers.add(store_writer)
            await asyncio.gather(
                self._pass_on(reader, store_writer, answers=False), self._pass_on(store_reader, writer, answers=True)
            )
            self._writers.discard(store_writer)
            store_writer.transport.abort()
        self._writers.discard(writer)
        writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        """Until one side is done; then the other hears of it, too."""
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._flowing.wait()
                if answers and self._manner is Manner.ONE_WAY:
                    self._swallowed = True
                    continue
                if self._manner is Manner.DELAYING:
                    await asyncio.sleep(DELAY_SECONDS)
                await self._write(writer, data)
        await self._flowing.wait()
        writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if self._manner is not Manner.DRIPPING:
            writer.write(data)
            await writer.drain()
            return
        for place in range(len(data)):
            writer.write(data[place : place + 1])
            await writer.drain()
            await asyncio.sleep(0)
