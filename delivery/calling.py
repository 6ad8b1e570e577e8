"""The call itself: httpx's interface on aiohttp's connections, one POST with one deadline over all of it. Whatever
happens comes back as a value; nothing is raised but a cancellation.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy

import aiohttp
import httpx

from delivery.addresses import AddressRules, ForbiddenAddress
from delivery.outcomes import Answered, CallError, CallResult, Unanswered
from delivery.request import Request
from delivery.resolving import GuardedResolver, Lookup, guarded_socket, system_lookup
from delivery.transport import WebhookTransport
from shared.logs import get_log

ANSWER_CAP = 4096
# Servers close idle connections, some after two seconds; a POST sent into that moment would fail for nothing.
KEEP_ALIVE_SECONDS = 1.5
# To put a connection away after the call is over.
CLOSE_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class Caller:
    client: httpx.AsyncClient
    connect_timeout: float

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, rules: AddressRules, connect_timeout: float, lookup: Lookup = system_lookup
    ) -> AsyncIterator["Caller"]:
        tls = ssl.create_default_context()
        connector = aiohttp.TCPConnector(
            limit=0,  # how many calls there may be is decided before a row is claimed
            resolver=GuardedResolver(rules, connect_timeout, lookup),
            socket_factory=guarded_socket(rules),
            use_dns_cache=False,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            ssl=tls,
        )
        # Neither layer keeps cookies, follows redirects or asks the environment for proxies and passwords.
        async with (
            aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, auto_decompress=False
            ) as session,
            httpx.AsyncClient(
                transport=WebhookTransport(session),
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                follow_redirects=False,
                trust_env=False,
            ) as client,
        ):
            yield cls(client, connect_timeout)

    async def call(self, request: Request) -> CallResult:
        deadline = asyncio.get_running_loop().time() + request.timeout
        try:
            async with asyncio.timeout_at(deadline):
                response = await self.client.send(self._http_request(request), stream=True)
        except TimeoutError:
            return Unanswered(CallError.TIMEOUT)
        except ForbiddenAddress:
            return Unanswered(CallError.FORBIDDEN_ADDRESS)
        except Exception as error:  # noqa: BLE001 - the boundary of one attempt: whatever it is, the others go on
            named = _error_class(error)
            if named is CallError.UNEXPECTED:
                # Its type alone: what it says may hold the URL.
                key = request.headers.get("X-Idempotency-Key")
                get_log().error("call_failed_unexpectedly", idempotency_key=key, error_type=type(error).__name__)
            return Unanswered(named)
        # The status is the answer. The rest is read for whoever looks into the matter, for as long as there is time.
        body = await _read_start(response, deadline)
        return Answered(response.status_code, response.headers.get("Retry-After"), body)

    def _http_request(self, request: Request) -> httpx.Request:
        return httpx.Request(
            "POST",
            request.url,
            # Written here: httpx would decode the host first, and knows fewer IDN names than there are (☃.net is one).
            headers={"Host": request.url.netloc.decode("ascii"), **request.headers},
            content=request.body,
            extensions={"timeout": {"connect": min(self.connect_timeout, request.timeout)}},
        )


async def _chunks(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    async for chunk in response.aiter_raw():
        yield chunk


async def _read_start(response: httpx.Response, deadline: float) -> bytes:
    start = b""
    try:
        async with asyncio.timeout_at(deadline), aclosing(_chunks(response)) as chunks:
            async for chunk in chunks:
                start += chunk
                if len(start) >= ANSWER_CAP:
                    break
    except (TimeoutError, httpx.HTTPError, aiohttp.ClientError, OSError):
        pass  # cut short: what there is will do
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT):
            await response.aclose()
    except (TimeoutError, httpx.HTTPError, aiohttp.ClientError, OSError):
        pass
    return start[:ANSWER_CAP]


# By aiohttp's own classes: the transport's names for them (a server that hangs up is a "ConnectTimeout") mislead.
_CLASSES: tuple[tuple[type[BaseException], CallError], ...] = (
    (aiohttp.InvalidURL, CallError.INVALID_URL),
    (httpx.InvalidURL, CallError.INVALID_URL),
    (aiohttp.ClientConnectorDNSError, CallError.DNS),
    (aiohttp.ClientConnectorCertificateError, CallError.TLS),
    (aiohttp.ClientSSLError, CallError.TLS),
    (aiohttp.ClientConnectorError, CallError.CONNECT),
    (aiohttp.ServerTimeoutError, CallError.TIMEOUT),
    (TimeoutError, CallError.TIMEOUT),
    (aiohttp.ClientConnectionError, CallError.CONNECTION_LOST),
    (aiohttp.ClientPayloadError, CallError.CONNECTION_LOST),
    (aiohttp.ClientResponseError, CallError.PROTOCOL),
    (ssl.SSLError, CallError.TLS),
    (OSError, CallError.CONNECTION_LOST),
)


def _error_class(error: BaseException) -> CallError:
    chain = [error]
    while cause := chain[-1].__cause__:
        chain.append(cause)
    for layer in reversed(chain[:2]):  # aiohttp's own, behind what the transport made of it
        for kind, named in _CLASSES:
            if isinstance(layer, kind):
                return named
    return CallError.UNEXPECTED
