"""The call itself: one POST, with one deadline over all of it. Whatever happens comes back as a value; nothing is
raised but a cancellation. No cookies are kept, no redirects followed, no proxies asked for.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from delivery.addresses import AddressRules, ForbiddenAddress
from delivery.connections import Connections
from delivery.http_connection import HttpConnection
from delivery.outcomes import CallError, CallResult, Unanswered
from delivery.request import Request
from delivery.resolving import GuardedResolver, Lookup, LookupFailed, system_lookup
from shared.logs import get_log


@dataclass(frozen=True, slots=True)
class Caller:
    connections: Connections

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, rules: AddressRules, connect_timeout: float, lookup: Lookup = system_lookup
    ) -> AsyncIterator["Caller"]:
        resolver = GuardedResolver(rules, connect_timeout, lookup)
        connections = Connections(rules, resolver, connect_timeout)
        try:
            yield cls(connections)
        finally:
            connections.close()

    async def call(self, request: Request) -> CallResult:
        deadline = asyncio.get_running_loop().time() + request.timeout
        try:
            content = wire_format(request)
            if kept := self.connections.idle(request.target):
                result = await _answer(kept, content, deadline)
                if result != Unanswered(CallError.CONNECTION_LOST) or kept.has_answered:
                    return result
                # Closed while nobody used it. The receiver knows the key, should it have read the request after all.
            async with asyncio.timeout_at(deadline):
                connection = await self.connections.open(request.target)
        except Exception as error:  # noqa: BLE001 - the boundary of one attempt: whatever it is, the others go on
            return Unanswered(_named(error, request))
        return await _answer(connection, content, deadline)


async def _answer(connection: HttpConnection, content: bytes, deadline: float) -> CallResult:
    try:
        return await connection.exchange(content, deadline)
    except asyncio.CancelledError:
        connection.abort()  # whatever it would answer, nobody will be there
        raise


def wire_format(request: Request) -> bytes:
    """ValueError if a header would be more than one line. They are checked when a job is scheduled, too."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in request.headers.items()])
    if lines.count("\n") != len(request.headers) or lines.count("\r") != len(request.headers) or "\0" in lines:
        raise ValueError("a header is not one line")
    length = f"Content-Length: {len(request.body)}\r\n\r\n"
    return b"".join((request.target.head, lines.encode(), length.encode(), request.body))


_NAMES: tuple[tuple[type[BaseException], CallError], ...] = (
    (ForbiddenAddress, CallError.FORBIDDEN_ADDRESS),
    (LookupFailed, CallError.DNS),
    (TimeoutError, CallError.TIMEOUT),
    (ssl.SSLError, CallError.TLS),
    (ssl.CertificateError, CallError.TLS),
    (OSError, CallError.CONNECT),
)


def _named(error: Exception, request: Request) -> CallError:
    for kind, name in _NAMES:
        if isinstance(error, kind):
            return name
    # Its type alone: what it says may hold the URL.
    key = request.headers.get("X-Idempotency-Key")
    get_log().error("call_failed_unexpectedly", idempotency_key=key, error_type=type(error).__name__)
    return CallError.UNEXPECTED
