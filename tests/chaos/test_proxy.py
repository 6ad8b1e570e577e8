"""The proxy passes everything on, and in each mode does to a connection what the mode says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.chaos.proxy import DELAY_SECONDS, Proxy, ProxyMode

SOON = 10.0
# Time in which an answer would come if it were passed on.
ANSWER_SECONDS = 0.3


@asynccontextmanager
async def an_echo() -> AsyncIterator[tuple[Proxy, list[bytes]]]:
    """Run a server that sends back what it gets, behind a proxy. Yields the proxy and what the server got."""
    got: list[bytes] = []
    connections: list[asyncio.Task[None]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionResetError):
            while data := await reader.read(1000):
                got.append(data)
                writer.write(data)
        writer.transport.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.get_running_loop().create_task(answer(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server, Proxy("127.0.0.1", server.sockets[0].getsockname()[1]).running() as proxy:
        yield proxy, got
    await asyncio.wait_for(asyncio.gather(*connections), SOON)
    await asyncio.sleep(0)


@asynccontextmanager
async def a_client(proxy: Proxy) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        await asyncio.sleep(0.01)


async def _read(reader: asyncio.StreamReader, number: int) -> bytes:
    return await asyncio.wait_for(reader.readexactly(number), SOON)


@pytest.mark.parametrize("mode", [ProxyMode.FAITHFUL, ProxyMode.DELAYING, ProxyMode.DRIPPING])
async def test_delayed_bytes_arrive_in_the_end(mode: ProxyMode) -> None:
    async with an_echo() as (proxy, _), a_client(proxy) as (reader, writer):
        proxy.set_mode(mode)
        began = asyncio.get_running_loop().time()
        writer.write(b"x" * 200)
        assert await _read(reader, 200) == b"x" * 200
        took = asyncio.get_running_loop().time() - began
        assert mode is not ProxyMode.DELAYING or took >= 2 * DELAY_SECONDS


async def test_dripping_writes_one_byte_at_a_time() -> None:
    async with an_echo() as (proxy, got), a_client(proxy) as (reader, writer):
        proxy.set_mode(ProxyMode.DRIPPING)
        writer.write(b"drip")
        await _read(reader, 4)
        assert len(got) > 1, "it came in pieces"


async def test_bytes_withheld_by_a_stall_are_passed_on_afterwards() -> None:
    async with an_echo() as (proxy, got), a_client(proxy) as (reader, writer):
        proxy.set_mode(ProxyMode.STALLING)
        writer.write(b"hello")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.readexactly(5), ANSWER_SECONDS)
        assert got == []
        proxy.set_mode(ProxyMode.FAITHFUL)
        assert await _read(reader, 5) == b"hello"


async def test_the_proxy_drops_only_answers_and_cuts_the_connection_afterwards() -> None:
    async with an_echo() as (proxy, got), a_client(proxy) as (reader, writer):
        proxy.set_mode(ProxyMode.ONE_WAY)
        writer.write(b"hello")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.readexactly(5), ANSWER_SECONDS)
        assert got == [b"hello"]
        proxy.set_mode(ProxyMode.FAITHFUL)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await _read(reader, 5)


async def test_a_cut_ends_every_connection_and_the_next_one_works() -> None:
    async with an_echo() as (proxy, _):
        async with a_client(proxy) as (reader, writer):
            writer.write(b"hello")
            await _read(reader, 5)
            proxy.cut()
            with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
                await _read(reader, 1)
        async with a_client(proxy) as (reader, writer):
            writer.write(b"again")
            assert await _read(reader, 5) == b"again"
