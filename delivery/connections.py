"""Connections to receivers: kept for a moment after a call, for the next one to the same origin, and opened with the
guard on addresses in place. A name is looked up once per connection, and the connection goes to an address that was
checked: see delivery.resolving.
"""

import asyncio
import socket
import ssl
from dataclasses import dataclass, field
from ipaddress import ip_address

from aiohappyeyeballs import start_connection

from delivery.addresses import AddressRules
from delivery.http_connection import HttpConnection
from delivery.request import Target
from delivery.resolving import AddressInfo, GuardedResolver, guarded_socket

# Servers close idle connections, some after two seconds; a POST sent into that moment would fail for nothing.
KEEP_ALIVE_SECONDS = 1.5
# In all: each takes a file descriptor, and hosts may be many.
MOST_KEPT = 256
# A host with two kinds of addresses of which one leads nowhere: the other gets its chance after this.
NEXT_ADDRESS_AFTER = 0.25

Origin = tuple[str, str, int]


@dataclass(slots=True)
class Connections:
    rules: AddressRules
    resolver: GuardedResolver
    connect_timeout: float
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    # The newest last.
    _idle: dict[Origin, list[HttpConnection]] = field(default_factory=dict)
    _kept: int = 0  # of all origins
    _sweep: asyncio.TimerHandle | None = None

    def idle(self, target: Target) -> HttpConnection | None:
        """One that is open and was in use a moment ago, if there is one."""
        waiting = self._idle.get(target.origin)
        oldest = self.loop.time() - KEEP_ALIVE_SECONDS
        while waiting:
            connection = waiting.pop()
            self._kept -= 1
            if not connection.is_closed and connection.idle_since > oldest:
                return connection
            connection.abort()
        return None

    async def open(self, target: Target) -> HttpConnection:
        """LookupFailed, NoLookupToSpare, ForbiddenAddress, TimeoutError, SSLError or another OSError if there is none
        to be had.
        """
        infos = await self._addresses(target)
        async with asyncio.timeout(self.connect_timeout):
            connected = await start_connection(
                infos,
                happy_eyeballs_delay=NEXT_ADDRESS_AFTER,
                interleave=1,
                socket_factory=guarded_socket(self.rules),
            )
            try:
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return await self._speak_http(connected, target)
            except BaseException:
                connected.close()
                raise

    async def _addresses(self, target: Target) -> list[AddressInfo]:
        try:
            address = ip_address(target.host)
        except ValueError:
            return await self.resolver.resolve(target.host, target.port)
        self.rules.check_address(target.host)
        if address.version == 4:
            return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (target.host, target.port))]
        return [(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (target.host, target.port, 0, 0))]

    async def _speak_http(self, connected: socket.socket, target: Target) -> HttpConnection:
        tls = self._tls if target.scheme == "https" else None
        _, connection = await self.loop.create_connection(
            lambda: HttpConnection(lambda idle: self._keep(target.origin, idle)),
            sock=connected,
            ssl=tls,
            server_hostname=target.host if tls else None,
        )
        return connection

    def _keep(self, origin: Origin, connection: HttpConnection) -> None:
        if self._kept >= MOST_KEPT:
            connection.abort()
            return
        connection.idle_since = self.loop.time()
        self._kept += 1
        self._idle.setdefault(origin, []).append(connection)
        if self._sweep is None:
            self._sweep = self.loop.call_later(KEEP_ALIVE_SECONDS, self._close_old_ones)

    def _close_old_ones(self) -> None:
        self._sweep = None
        oldest = self.loop.time() - KEEP_ALIVE_SECONDS
        for origin, waiting in list(self._idle.items()):
            kept = [connection for connection in waiting if connection.idle_since > oldest and not connection.is_closed]
            for connection in set(waiting) - set(kept):
                connection.abort()
            self._kept -= len(waiting) - len(kept)
            if kept:
                self._idle[origin] = kept
            else:
                del self._idle[origin]
        if self._idle:
            self._sweep = self.loop.call_later(KEEP_ALIVE_SECONDS, self._close_old_ones)

    def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        for waiting in self._idle.values():
            for connection in waiting:
                connection.abort()
        self._idle.clear()
        self._kept = 0
