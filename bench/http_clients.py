"""How many webhook calls a client makes in a second: `python -m bench.http_clients [seconds]`.

The same POST against the same receiver on loopback (a process of its own), by httpx with its own pool, by httpx on
aiohttp's connections, by this project's caller (which adds the guard, the deadline and the reading of the answer), and
by aiohttp alone. Prints calls per second and the ratio to the last, the ceiling. The machine's speed cancels out of the
ratios; the absolute figures are worth little elsewhere.
"""

import asyncio
import multiprocessing
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection

import aiohttp
import httpx
from aiohttp import web
from httpx_aiohttp import AiohttpTransport

from delivery.addresses import AddressRules, parse_networks
from delivery.calling import Caller
from delivery.outcomes import Answered
from delivery.request import Request

BODY = b'{"id":"bench","topic":"bench","sequence":1,"payload":{"text":"' + b"x" * 400 + b'"}}'
HEADERS = {"Content-Type": "application/json", "X-Idempotency-Key": "event-bench", "Accept-Encoding": "identity"}
CONNECTIONS = (16, 64)

Call = Callable[[], Awaitable[None]]


def receive(port: Connection) -> None:
    """The receiver's process: says which port it has, and answers until it is ended."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(text="ok")

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(serve())


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
    request = Request(httpx.URL(url), HEADERS, BODY, timeout=10.0)
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
    "aiohttp alone": aiohttp_alone,
}


async def measure(call: Call, connections: int, seconds: float) -> float:
    """Calls per second, by so many callers at once."""
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


async def run(port: int, seconds: float) -> None:
    for connections in CONNECTIONS:
        rates = {}
        for name, client in CLIENTS.items():
            async with client(f"http://127.0.0.1:{port}/", connections) as call:
                rates[name] = await measure(call, connections, seconds)
        ceiling = rates["aiohttp alone"]
        sys.stdout.write(f"{connections} connections\n")
        for name, rate in rates.items():
            sys.stdout.write(f"  {name:22} {rate:8.0f} calls/s  {rate / ceiling:5.2f} of the ceiling\n")


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    ours, theirs = multiprocessing.Pipe()
    receiver = multiprocessing.get_context("spawn").Process(target=receive, args=(theirs,), daemon=True)
    receiver.start()
    try:
        asyncio.run(run(ours.recv(), seconds))
    finally:
        receiver.terminate()
        receiver.join(10)


if __name__ == "__main__":
    main()
