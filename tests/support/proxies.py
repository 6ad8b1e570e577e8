"""A small HTTP proxy, as a company would have one between its machines and the internet. It finds every name on this
machine.
"""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(slots=True)
class ForwardProxy:
    """Takes CONNECT, and requests for a whole URL. `asked` has their heads as they came."""

    login: str | None = None  # user:password
    refusal: bytes | None = None  # the answer to a CONNECT, instead of a tunnel
    asked: list[str] = field(default_factory=list)
    connections: set[asyncio.Future[None]] = field(default_factory=set)

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.add(asyncio.ensure_future(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.asked.append(head)
            await self._pass_on(head, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _pass_on(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, target, _ = head.split("\r\n", maxsplit=1)[0].split(" ")
        if self.login is not None and f"Basic {base64.b64encode(self.login.encode()).decode()}\r\n" not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        if method == "CONNECT" and self.refusal is not None:
            writer.write(self.refusal)
            return
        there, to_there = await asyncio.open_connection("127.0.0.1", parts.port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            lines = [line for line in head.split("\r\n")[1:-2] if not line.startswith("Proxy-")]
            path = target.split(parts.netloc, 1)[1]
            to_there.write("\r\n".join([f"{method} {path} HTTP/1.1", *lines, "Connection: close", "", ""]).encode())
        try:
            await asyncio.gather(_pump(reader, to_there), _pump(there, writer))
        finally:
            to_there.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
    writer.close()


@asynccontextmanager
async def a_proxy(
    login: str | None = None, refusal: bytes | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[ForwardProxy, str]]:
    """Run a proxy. Yields it and its address."""
    proxy = ForwardProxy(login, refusal)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=tls)
    user = f"{login}@" if login else ""
    try:
        yield proxy, f"{'https' if tls else 'http'}://{user}127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for connection in proxy.connections:
            connection.cancel()
        await asyncio.gather(*proxy.connections, return_exceptions=True)
