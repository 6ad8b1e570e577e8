"""The call itself: one POST through aiohttp, with one deadline over all of it. Whatever happens comes back as a value;
nothing is raised but a cancellation.

aiohttp and nothing on top of it: httpx's interface on the same connections took three times as long for a call.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import yarl

from delivery.addresses import AddressRules, ForbiddenAddress
from delivery.outcomes import Answered, CallError, CallResult, Unanswered
from delivery.request import Request
from delivery.resolving import GuardedResolver, Lookup, guarded_socket, system_lookup
from shared.logs import get_log

ANSWER_CAP = 4096
# Servers close idle connections, some after two seconds; a POST sent into that moment would fail for nothing.
KEEP_ALIVE_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class Caller:
    session: aiohttp.ClientSession
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
        # It keeps no cookies, follows no redirects and asks the environment for no proxies and passwords.
        async with aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, auto_decompress=False
        ) as session:
            yield cls(session, connect_timeout)

    async def call(self, request: Request) -> CallResult:
        deadline = asyncio.get_running_loop().time() + request.timeout
        try:
            async with asyncio.timeout_at(deadline):
                response = await self.session.post(
                    # The address is called as it was scheduled, escape for escape: some are signed.
                    yarl.URL(str(request.url), encoded=True),
                    # Its own reading of the host would be another one: it knows fewer IDN names than there are.
                    headers={"Host": request.url.netloc.decode("ascii"), **request.headers},
                    data=request.body,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(sock_connect=min(self.connect_timeout, request.timeout)),
                )
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
        return Answered(response.status, response.headers.get("Retry-After"), body)


async def _read_start(response: aiohttp.ClientResponse, deadline: float) -> bytes:
    start = b""
    try:
        async with asyncio.timeout_at(deadline):
            while len(start) < ANSWER_CAP and (chunk := await response.content.readany()):
                start += chunk
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass  # cut short: what there is will do
    finally:
        # An answer that was read to its end has given its connection back already; any other's is of no more use.
        response.close()
    return start[:ANSWER_CAP]


_CLASSES: tuple[tuple[type[BaseException], CallError], ...] = (
    (aiohttp.InvalidURL, CallError.INVALID_URL),
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
    return next((named for kind, named in _CLASSES if isinstance(error, kind)), CallError.UNEXPECTED)
