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
from delivery.outcomes import CallError, CallResult, Unanswered
from delivery.request import Request, wire_format
from delivery.resolving import GuardedResolver, Lookup, LookupFailed, NoLookupToSpare, system_lookup
from shared.logs import get_log

NO_CONNECTION = Unanswered(CallError.CONNECTION_LOST)


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
        connections, connection = self.connections, None
        deadline = connections.loop.time() + request.timeout
        try:
            content = wire_format(request)
            if connection := connections.idle(request.target):
                result = await connection.exchange(content, deadline)
                if result != NO_CONNECTION or connection.has_answered:
                    return result
                # Closed while nobody used it. The receiver knows the key, should it have read the request after all.
            async with asyncio.timeout_at(deadline):
                connection = await connections.open(request.target)
            return await connection.exchange(content, deadline)
        except asyncio.CancelledError:
            if connection is not None:
                connection.abort()  # whatever it would answer, nobody will be there
            raise
        except Exception as error:  # noqa: BLE001 - the boundary of one attempt: whatever it is, the others go on
            return Unanswered(_named(error, request))


_NAMES: tuple[tuple[type[BaseException], CallError], ...] = (
    (ForbiddenAddress, CallError.FORBIDDEN_ADDRESS),
    (LookupFailed, CallError.DNS),
    (NoLookupToSpare, CallError.TOO_MANY_LOOKUPS),
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
