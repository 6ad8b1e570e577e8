"""The HTTP server of a service: /metrics for Prometheus, /healthz (the process and all its loops run), /readyz (broker
and database are reachable, the schema is current). /readyz and /metrics run the same checks when they are called, so
the orchestrator and Prometheus get the same answer.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import Gauge, exposition

from shared.amqp.connection import Broker
from shared.errors import CannotStart
from shared.postgres.pool import Pool, schema_is_current
from shared.runtime.loops import Watchdog

CHECK_TIMEOUT = 3.0

Check = Callable[[], Awaitable[bool]]


def readiness_checks(pool: Pool, brokers: Sequence[Broker]) -> dict[str, Check]:
    """Return the checks behind /readyz: every broker connection is up, and the schema is current."""

    async def brokers_are_up() -> bool:
        return all(broker.is_up for broker in brokers)

    return {"broker": brokers_are_up, "database": lambda: schema_is_current(pool)}


@asynccontextmanager
async def serve_health(
    host: str,
    port: int,
    watchdog: Watchdog,
    checks: Mapping[str, Check],
    notes: Callable[[], Mapping[str, object]] = dict,
) -> AsyncIterator[None]:
    """Serve /metrics, /healthz and /readyz until the block ends. Raises CannotStart if the port is not free. /readyz
    shows the notes, too; they do not decide whether the service is ready.
    """
    registry = watchdog.registry
    up = Gauge("dependency_up", "1 if the service reaches it, else 0", ["dependency"], registry=registry)

    async def run_checks() -> dict[str, bool]:
        answers = await asyncio.gather(*(_passes(check) for check in checks.values()))
        return dict(zip(checks, answers, strict=True))

    async def metrics(request: web.Request) -> web.Response:
        for name, passes in (await run_checks()).items():
            up.labels(name).set(passes)
        encoder, content_type = exposition.choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encoder(registry), headers={"Content-Type": content_type})

    async def alive(_: web.Request) -> web.Response:
        if stuck := watchdog.stuck():
            return web.json_response({"status": "stuck", "silent_seconds": stuck}, status=503)
        return web.json_response({"status": "alive"})

    async def ready(_: web.Request) -> web.Response:
        results = await run_checks()
        return web.json_response({**results, **notes()}, status=200 if all(results.values()) else 503)

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics), web.get("/healthz", alive), web.get("/readyz", ready)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise CannotStart(f"METRICS_PORT: cannot listen on {host}:{port}: {error.strerror}") from None
        yield
    finally:
        await runner.cleanup()


async def _passes(check: Check) -> bool:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            return await check()
    except Exception:  # noqa: BLE001 - a check that raises has failed, whatever it raises
        return False
