"""The call itself: one POST through aiohttp, with one deadline over all of it. Every end of a call is a value; only a
cancellation is raised. `Caller` keeps no cookies, follows no redirects and uses no proxies of the environment.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial

import aiohttp

from delivery.attempt.retry import Answered, CallError, CallResult, Unanswered
from delivery.errors import TooManyLookups
from delivery.http.connection_settings import Proxy
from delivery.http.request import Request
from delivery.http.resolver import AddressInfo, GuardedResolver, Lookup, system_lookup
from shared.contract.address_rules import AddressRules, parse_networks
from shared.errors import ForbiddenAddress
from shared.runtime.logs import get_log

MAX_ANSWER_BYTES = 4096
# Servers close idle connections, some after two seconds; a POST sent into that moment would have to be sent again.
KEEP_ALIVE_SECONDS = 1.5
# Connections that wait for their next call, in all: each takes a file descriptor, and there may be many hosts.
MAX_IDLE_CONNECTIONS = 256
# When a receiver stops reading, the kernel gives its connection up after this time, which is longer than a call may
# take. Without it, a call that was cut while its body was being sent would keep its socket for as long as the receiver
# stays connected.
MAX_UNREAD_SECONDS = 130
ALL_ADDRESSES = AddressRules(parse_networks("0.0.0.0/0,::/0"))
PROXY_AUTHENTICATION_REQUIRED = 407

# The sockets that the call of this context has opened. An empty list: the call uses a connection of an earlier call.
_sockets_of_call: ContextVar[list[socket.socket]] = ContextVar("sockets_of_call")


class GuardedSockets:
    """Makes the sockets of webhook calls, and counts those that are open.

    It is the last guard: it checks the address that the socket is about to connect to. So it also covers addresses that
    are written into a URL, which the resolver never sees.
    """

    def __init__(self, rules: AddressRules) -> None:
        self._rules = rules
        self._made: list[socket.socket] = []

    def make(self, info: AddressInfo) -> socket.socket:
        """Make a socket for an address, or raise ForbiddenAddress. aiohttp calls this for every connection."""
        family, kind, proto, _, address = info
        self._rules.check_address(str(address[0]))
        made = socket.socket(family=family, type=kind, proto=proto)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, MAX_UNREAD_SECONDS * 1000)
        self._made.append(made)
        _sockets_of_call.get([]).append(made)
        return made

    def are_open(self, count: int) -> bool:
        """Tell whether at least `count` sockets are open."""
        if len(self._made) >= count:
            self._made = [made for made in self._made if made.fileno() >= 0]
        return len(self._made) >= count


@dataclass(slots=True)
class Caller:
    """Sends requests to receivers. `opened` makes one, and closes its connections in the end."""

    rules: AddressRules
    sockets: GuardedSockets
    pooled: aiohttp.ClientSession  # keeps connections for the next call
    single_use: aiohttp.ClientSession  # opens a connection for each call, and closes it
    proxy: Proxy | None = None
    _calls: int = 0  # under way

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
        """Open a caller whose connections go to allowed addresses alone.

        With a proxy, every connection goes to the proxy. An operator chose it, so it may be at any address; `_send`
        checks the receiver's host instead.
        """
        reachable = rules if proxy is None else ALL_ADDRESSES
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
            session(connector=connector(keepalive_timeout=KEEP_ALIVE_SECONDS)) as pooled,
            session(connector=connector(force_close=True)) as single_use,
        ):
            yield cls(rules, sockets, pooled, single_use, proxy)

    async def call(self, request: Request) -> CallResult:
        """Send a request and return the answer, as far as it has come by the deadline.

        The status decides about the delivery. The start of the body is read only for operators who look at an attempt.
        """
        response, start = None, b""
        self._calls += 1
        try:
            async with asyncio.timeout(request.timeout):
                response = await self._send(request)
                while len(start) < MAX_ANSWER_BYTES and (chunk := await response.content.readany()):
                    start += chunk
        except Exception as error:  # noqa: BLE001 - the boundary of one attempt: other calls go on, whatever it is
            if response is None:
                return Unanswered(_call_error(error, request), _detail(error))
        finally:
            self._calls -= 1
            if response is not None:
                # An answer that was read to its end has given its connection back. Any other connection is of no use.
                response.close()
        if response.status < 100:
            return Unanswered(CallError.PROTOCOL)
        if response.status == PROXY_AUTHENTICATION_REQUIRED and self.proxy is not None:
            return Unanswered(CallError.CONNECT)  # this comes from the proxy, not from the receiver
        return Answered(response.status, response.headers.get("Retry-After"), start[:MAX_ANSWER_BYTES])

    async def _send(self, request: Request) -> aiohttp.ClientResponse:
        """Send a request and return the head of the answer.

        The receiver may have closed a kept connection in the meantime: then the request is sent once more, on a new
        connection. If the receiver has read the first request after all, the idempotency key of the second is the same.
        """
        if self.proxy is not None:
            self.rules.check_host(request.target.raw_host or "")
        opened: list[socket.socket] = []
        _sockets_of_call.set(opened)
        other_calls = self._calls - 1
        if self.sockets.are_open(other_calls + MAX_IDLE_CONNECTIONS):
            return await self._post(self.single_use, request)
        try:
            return await self._post(self.pooled, request)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if opened or not _is_a_stale_connection(error):
                raise
        return await self._post(self.single_use, request)

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
    """Tell whether a kept connection ended before any of the answer came, as far as aiohttp can tell."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return isinstance(error.message, str)  # otherwise it is the part of the answer that has come
    return not isinstance(error, aiohttp.ClientConnectorError)


# In this order: the first class that an error is an instance of decides.
_CALL_ERRORS: tuple[tuple[type[Exception], CallError], ...] = (
    (ForbiddenAddress, CallError.FORBIDDEN_ADDRESS),
    (TooManyLookups, CallError.TOO_MANY_LOOKUPS),
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


def _detail(error: Exception) -> str | None:
    """Return what an operator may read of an error. Texts of other errors may hold the URL, and with it a token."""
    return str(error) if isinstance(error, ForbiddenAddress) else None


def _call_error(error: Exception, request: Request) -> CallError:
    for kind, name in _CALL_ERRORS:
        if isinstance(error, kind):
            return name
    # Log the type of the error alone: its text may hold the URL.
    key = request.headers.get("X-Idempotency-Key")
    get_log().error("call_failed_unexpectedly", idempotency_key=key, error_type=type(error).__name__)
    return CallError.UNEXPECTED
