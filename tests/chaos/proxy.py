"""A TCP proxy between a service and a store. It can cut every connection, pass nothing on, drop the store's answers,
delay, or write byte by byte. After a stall the withheld bytes are passed on. Dropped answers are lost, so the proxy
cuts their connections afterwards.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto

CHUNK = 64 * 1024
CONNECT_SECONDS = 5.0
CLOSE_SECONDS = 10.0
DELAY_SECONDS = 0.15


class ProxyMode(Enum):
    FAITHFUL = auto()
    STALLING = auto()
    ONE_WAY = auto()
    DELAYING = auto()
    DRIPPING = auto()


class Proxy:
    """The proxy. It listens on `port` until the block of `running()` ends."""

    def __init__(self, host: str, port: int) -> None:
        self.port = 0
        self._to = (host, port)
        self._mode = ProxyMode.FAITHFUL
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._connections: set[asyncio.Task[None]] = set()
        self._answers_dropped = False

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
            if self._connections:
                await asyncio.wait(self._connections, timeout=CLOSE_SECONDS)
            await asyncio.sleep(0)

    def set_mode(self, mode: ProxyMode) -> None:
        if mode is not ProxyMode.ONE_WAY and self._answers_dropped:
            self.cut()
        self._mode = mode
        if mode is ProxyMode.STALLING:
            self._flowing.clear()
        else:
            self._flowing.set()

    def cut(self) -> None:
        """Abort all connections. The peer gets a reset instead of an orderly close, if the kernel sends one."""
        self._answers_dropped = False
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
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
        """Copy bytes until the reader ends, then close the writer."""
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._flowing.wait()
                if answers and self._mode is ProxyMode.ONE_WAY:
                    self._answers_dropped = True
                    continue
                if self._mode is ProxyMode.DELAYING:
                    await asyncio.sleep(DELAY_SECONDS)
                await self._write(writer, data)
        await self._flowing.wait()
        writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if self._mode is not ProxyMode.DRIPPING:
            writer.write(data)
            await writer.drain()
            return
        for place in range(len(data)):
            writer.write(data[place : place + 1])
            await writer.drain()
            await asyncio.sleep(0)
