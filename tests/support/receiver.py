"""A webhook receiver on loopback. It remembers every call and answers as a test says, also with a delay."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.support.eventually import eventually

Behaviour = Callable[["Call"], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Call:
    path: str
    headers: Mapping[str, str]  # whatever the case
    body: bytes
    request: web.Request = field(repr=False)

    @property
    def key(self) -> str:
        return self.headers["X-Idempotency-Key"]

    @property
    def content(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


def answering(*statuses: int, headers: dict[str, str] | None = None) -> Behaviour:
    """Answer the calls of each key with these statuses in turn, then always with the last one."""
    seen: Counter[str] = Counter()

    async def answer(call: Call) -> web.Response:
        status = statuses[min(seen[call.key], len(statuses) - 1)]
        seen[call.key] += 1
        return web.Response(status=status, headers=headers, text=f"status {status}")

    return answer


@dataclass(slots=True)
class Receiver:
    """`effects` are what a correct receiver does: one effect for each key, however often it is called."""

    port: int = 0
    behaviour: Behaviour = field(default_factory=lambda: answering(200))
    calls: list[Call] = field(default_factory=list)
    effects: dict[str, Call] = field(default_factory=dict)
    at_once: int = 0
    most_at_once: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def keys(self) -> Counter[str]:
        return Counter(call.key for call in self.calls)

    async def called(self, times: int, within: float = 20.0) -> list[Call]:
        async def look() -> bool:
            assert len(self.calls) >= times, f"{len(self.calls)} of {times} calls so far"
            return True

        await eventually(look, within)
        return self.calls

    async def handle(self, request: web.Request) -> web.StreamResponse:
        call = Call(request.path_qs, request.headers, await request.read(), request)
        self.calls.append(call)
        self.effects.setdefault(call.key, call)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self.behaviour(call)
        finally:
            self.at_once -= 1


@dataclass(slots=True)
class Gate:
    """A behaviour that answers no call until `open()`."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)
    status: int = 200

    async def __call__(self, _: Call) -> web.Response:
        await self.opened.wait()
        return web.Response(status=self.status)


@asynccontextmanager
async def a_receiver(behaviour: Behaviour | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver(behaviour=behaviour or answering(200))
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{tail:.*}", receiver.handle)
    # Calls that still hang are cancelled at the end, without waiting for them.
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    receiver.port = runner.addresses[0][1]
    try:
        yield receiver
    finally:
        await runner.cleanup()
