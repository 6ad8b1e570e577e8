"""The call itself: one POST through aiohttp, with one deadline over all of it. Whatever happens comes back as a value;
nothing is raised but a cancellation. No cookies are kept, no redirects followed, no proxies of the environment used.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import aiohttp

from delivery.attempt.retry import Answered, CallError, CallResult, Unanswered
from delivery.http.address_guard import AddressRules, ForbiddenAddress, parse_networks
from delivery.http.proxy import Proxy
from delivery.http.request import Request
from delivery.http.resolver import GuardedResolver, Lookup, NoLookupToSpare, system_lookup
from delivery.http.sockets import GuardedSockets, opened_here
from shared.runtime.logs import get_log

ANSWER_CAP = 4096
# Servers close idle connections, some after two seconds; a POST sent into that moment would have to be sent again.
KEEP_ALIVE_SECONDS = 1.5
# Connections that wait for their next call, in all: each takes a file descriptor, and hosts may be many.
MAX_KEPT = 256
EVERYWHERE = AddressRules(parse_networks("0.0.0.0/0,::/0"))
PROXY_AUTHENTICATION_REQUIRED = 407


@dataclass(slots=True)
class Caller:
    rules: AddressRules
    sockets: GuardedSockets
    keeping: aiohttp.ClientSession  # keeps connections for the next call
    closing: aiohttp.ClientSession  # opens a connection for each call
    proxy: Proxy | None = None
    _under_way: int = 0

    @classmethod
    @asynccontextmanager
    async def opened(
        cls,
        rules: AddressRules,
        connect_timeout: float,
        lookup: Lookup = system_lookup,
        *,
        tls: ssl.SSLContext | None = None,
        proxy: Proxy | None = None,
    ) -> AsyncIterator["Caller"]:
        # With a proxy, every connection goes to the proxy, which an operator chose: it may be anywhere.
        reachable = rules if proxy is None else EVERYWHERE
        sockets = GuardedSockets(reachable)
        connector = partial(
            aiohttp.TCPConnector,
            limit=0,  # how many calls there may be is decided before a row is claimed
            resolver=GuardedResolver(reachable, connect_timeout, lookup),
            socket_factory=sockets.make,
            use_dns_cache=False,
            ssl=tls or ssl.create_default_context(),
        )
        session = partial(
            aiohttp.ClientSession,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout),
            proxy=proxy.url if proxy else None,
        )
        async with (
            session(connector=connector(keepalive_timeout=KEEP_ALIVE_SECONDS)) as keeping,
            session(connector=connector(force_close=True)) as closing,
        ):
            yield cls(rules, sockets, keeping, closing, proxy)

    async def call(self, request: Request) -> CallResult:
        """The answer, as far as it has come by the deadline. The status counts: the body is only read for people who
        look into the matter.
        """
        response, start = None, b""
        self._under_way += 1
        try:
            async with asyncio.timeout(request.timeout):
                response = await self._send(request)
                while len(start) < ANSWER_CAP and (chunk := await response.content.readany()):
                    start += chunk
        except Exception as error:  # noqa: BLE001 - the boundary of one attempt: whatever it is, the others go on
            if response is None:
                return Unanswered(_named(error, request))
        finally:
            self._under_way -= 1
            if response is not None:
                # An answer that was read to its end has given its connection back. Any other connection is of no use.
                response.close()
        if response.status < 100:
            return Unanswered(CallError.PROTOCOL)
        if response.status == PROXY_AUTHENTICATION_REQUIRED and self.proxy is not None:
            return Unanswered(CallError.CONNECT)  # this comes from the proxy, not from the receiver
        return Answered(response.status, response.headers.get("Retry-After"), start[:ANSWER_CAP])

    async def _send(self, request: Request) -> aiohttp.ClientResponse:
        """The answer's head. A kept connection may have been closed by the receiver in the meantime: then the request
        is sent once more, on a connection of its own. Should the receiver have read the first one after all, it has
        the idempotency key to tell.
        """
        if self.proxy is not None:
            self.rules.check_host(request.target.raw_host or "")
        opened: list[socket.socket] = []
        opened_here.set(opened)
        others_under_way = self._under_way - 1
        if self.sockets.are_open(others_under_way + MAX_KEPT):
            return await self._post(self.closing, request)
        try:
            return await self._post(self.keeping, request)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if opened or not _is_a_stale_connection(error):
                raise
        return await self._post(self.closing, request)

    async def _post(self, session: aiohttp.ClientSession, request: Request) -> aiohttp.ClientResponse:
        headers, proxy_headers = request.headers, None
        if self.proxy is not None and request.target.scheme == "https":
            proxy_headers = self.proxy.headers  # for the CONNECT alone: the receiver does not see them
        elif self.proxy is not None:
            headers = headers | self.proxy.headers
        return await session.post(
            request.target, data=request.body, headers=headers, proxy_headers=proxy_headers, allow_redirects=False
        )


def _is_a_stale_connection(error: aiohttp.ServerDisconnectedError | aiohttp.ClientOSError) -> bool:
    """Whether a kept connection ended before any of the answer came, as far as aiohttp can tell."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return isinstance(error.message, str)  # otherwise it is the part of the answer that has come
    return not isinstance(error, aiohttp.ClientConnectorError)


_NAMES: tuple[tuple[type[Exception], CallError], ...] = (
    (ForbiddenAddress, CallError.FORBIDDEN_ADDRESS),
    (NoLookupToSpare, CallError.TOO_MANY_LOOKUPS),
    (TimeoutError, CallError.TIMEOUT),
    (aiohttp.InvalidURL, CallError.INVALID_URL),
    (aiohttp.ClientHttpProxyError, CallError.CONNECT),
    (aiohttp.ClientConnectorDNSError, CallError.DNS),
    (aiohttp.ClientConnectorCertificateError, CallError.TLS),
    (aiohttp.ClientSSLError, CallError.TLS),
    (aiohttp.ClientConnectorError, CallError.CONNECT),
    (aiohttp.ClientConnectionError, CallError.CONNECTION_LOST),
    (aiohttp.ClientResponseError, CallError.PROTOCOL),
)


def _named(error: Exception, request: Request) -> CallError:
    for kind, name in _NAMES:
        if isinstance(error, kind):
            return name
    # Its type alone: what it says may hold the URL.
    key = request.headers.get("X-Idempotency-Key")
    get_log().error("call_failed_unexpectedly", idempotency_key=key, error_type=type(error).__name__)
    return CallError.UNEXPECTED
