"""How many webhook calls a client makes in a second.

The same POST against the same receiver on loopback (a process of its own), by httpx with its own pool, by httpx on
aiohttp's connections, by delivery's caller (aiohttp with the guard, the deadline and the reading of the answer), and by
aiohttp alone, the ceiling.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from bench.figures import Beside, Figure
from bench.plan import Plan
from bench.receiving import a_receiver
from bench.rig import Rig
from delivery.attempt.retry import Answered
from delivery.http.caller import Caller
from delivery.http.request import Request, target_of
from shared.contract.address_rules import AddressRules, parse_networks

BODY = b'{"id":"bench","topic":"bench","sequence":1,"payload":{"text":"' + b"x" * 400 + b'"}}'
HEADERS = {"Content-Type": "application/json", "X-Idempotency-Key": "event-bench", "Accept-Encoding": "identity"}
CONNECTIONS = (16, 64)

Call = Callable[[], Awaitable[None]]


@asynccontextmanager
async def httpx_alone(url: str, connections: int) -> AsyncIterator[Call]:
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    async with httpx.AsyncClient(limits=limits, trust_env=False) as client:
        yield lambda: _post(client, url)


@asynccontextmanager
async def httpx_on_aiohttp(url: str, connections: int) -> AsyncIterator[Call]:
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections))
    async with httpx.AsyncClient(transport=AiohttpTransport(client=session), trust_env=False) as client:
        yield lambda: _post(client, url)


async def _post(client: httpx.AsyncClient, url: str) -> None:
    (await client.post(url, content=BODY, headers=HEADERS)).raise_for_status()


@asynccontextmanager
async def our_caller(url: str, connections: int) -> AsyncIterator[Call]:
    request = Request(target_of(url), HEADERS, BODY, timeout=10.0)
    async with Caller.opened(AddressRules(parse_networks("127.0.0.0/8")), connect_timeout=5.0) as caller:

        async def call() -> None:
            result = await caller.call(request)
            if not isinstance(result, Answered):
                raise RuntimeError(f"no answer: {result}")  # noqa: TRY004

        yield call


@asynccontextmanager
async def aiohttp_alone(url: str, connections: int) -> AsyncIterator[Call]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections)) as session:

        async def call() -> None:
            async with session.post(url, data=BODY, headers=HEADERS) as response:
                response.raise_for_status()
                await response.read()

        yield call


CLIENTS = {
    "httpx, its own pool": httpx_alone,
    "httpx on aiohttp": httpx_on_aiohttp,
    "delivery's caller": our_caller,
    "aiohttp": aiohttp_alone,
}


async def measure(call: Call, connections: int, seconds: float) -> float:
    """Measure calls per second, by so many callers at once."""
    made = 0

    async def repeat(until: float) -> None:
        nonlocal made
        while time.perf_counter() < until:
            await call()
            made += 1

    await asyncio.gather(*(repeat(time.perf_counter() + 0.3) for _ in range(connections)))  # connections are open now
    made = 0
    started = time.perf_counter()
    await asyncio.gather(*(repeat(started + seconds) for _ in range(connections)))
    return made / (time.perf_counter() - started)


async def run(_: Rig, plan: Plan) -> AsyncIterator[Figure]:
    async with a_receiver() as url:
        for connections in CONNECTIONS:
            rates = {}
            for name, client in CLIENTS.items():
                async with client(url, connections) as call:
                    rates[name] = await measure(call, connections, plan.seconds)
            beside = Beside("aiohttp alone", rates.pop("aiohttp"))
            for name, rate in rates.items():
                yield Figure(f"{name}, {connections} connections", rate, "calls/s", beside)
