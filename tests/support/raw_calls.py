"""Webhook calls to servers whose every byte a test chooses."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from delivery.attempt.retry import CallResult
from delivery.http.caller import Caller
from delivery.http.request import Request, target_of
from delivery.http.resolver import AddressInfo
from shared.contract.address_rules import AddressRules, parse_networks

LOOPBACK = AddressRules(parse_networks("127.0.0.0/8"))
RawServer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


def to_loopback(_: str, port: int) -> list[AddressInfo]:
    """Look up every name as 127.0.0.1."""
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


def a_request(url: str, timeout: float = 60.0, body: bytes = b"{}") -> Request:
    return Request(target_of(url), {"X-Idempotency-Key": "k", "Accept-Encoding": "identity"}, body, timeout)


async def call(url: str, timeout: float = 60.0, rules: AddressRules = LOOPBACK, **options: Any) -> CallResult:
    async with Caller.opened(rules, connect_timeout=10.0, **options) as caller:
        return await caller.call(a_request(url, timeout))


@asynccontextmanager
async def a_raw_server(behave: RawServer, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Run a server whose handler may break every rule of HTTP."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await behave(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    finally:
        server.close()


async def answer_and_close(lines: list[bytes], answer: bytes, reader: asyncio.StreamReader, writer: Any) -> None:
    """Read the head of a request and keep it."""
    while (line := await reader.readline()).strip():
        lines.append(line.strip())
    writer.write(answer)
    await writer.drain()


async def answer_each(answer: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await reader.readuntil(b"{}")
        writer.write(answer)
        await writer.drain()


async def called_twice(answer: bytes, pause: float = 0.0) -> tuple[list[CallResult], int]:
    """Make the call. Returns its result and the number of connections that it took."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await answer_each(answer, reader, writer)

    async with a_raw_server(serve) as url, Caller.opened(LOOPBACK, 1.0) as caller:
        first = await caller.call(a_request(url))
        await asyncio.sleep(pause)
        return [first, await caller.call(a_request(url))], connections
