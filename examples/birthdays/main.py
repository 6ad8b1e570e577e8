"""Wiring: which parts run in this process, on what, and until when. Every part can run alone, in any number."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import structlog
import uvicorn
from fastapi import FastAPI
from pydantic import ValidationError

from examples.birthdays.api import api, web_app
from examples.birthdays.cleaning import clean
from examples.birthdays.database import a_pool, database_now
from examples.birthdays.receiver import receiver
from examples.birthdays.relay import relay
from examples.birthdays.replies import listen_for_replies
from examples.birthdays.running import Stop, keep_going
from examples.birthdays.settings import Settings

if TYPE_CHECKING:
    from examples.birthdays.database import Pool
    from examples.birthdays.profiles import Clock

PARTS = ("api", "receiver", "relay", "replies", "cleaning")
USAGE = f"python -m examples.birthdays [part …]; the parts, all of them by default, are {', '.join(PARTS)}"


class CannotListen(Exception):
    pass


def main() -> int:
    parts = sys.argv[1:] or PARTS
    if not set(parts) <= set(PARTS):
        sys.stderr.write(f"{USAGE}\n")
        return 2
    try:
        settings = Settings()
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            variable = "".join(f"{name}: ".upper() for name in problem["loc"])
            sys.stderr.write(f"{variable}{problem['msg'].removeprefix('Value error, ')}\n")
        return 2
    _configure_logs()
    try:
        asyncio.run(_run_until_signalled(settings, parts))
    except CannotListen as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


async def _run_until_signalled(settings: Settings, parts: Collection[str]) -> None:
    stop = Stop()
    for ending in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(ending, stop.set)
    await run(settings, stop, parts)


async def run(
    settings: Settings,
    stop: Stop,
    parts: Collection[str] = PARTS,
    *,
    ready: Callable[[], None] = lambda: None,
    clock: "Clock" = database_now,
) -> None:
    """Run the parts until the stop. Then each part finishes what it has begun."""
    async with a_pool(settings.database_url) as pool:
        loops = {
            "relay": partial(relay, pool, settings),
            "replies": partial(listen_for_replies, pool, settings),
            "cleaning": partial(clean, pool),
        }
        async with _serving(_routes(pool, settings, parts, clock), settings), asyncio.TaskGroup() as group:
            for name in set(parts) & loops.keys():
                group.create_task(keep_going(name, loops[name], stop), name=name)
            structlog.get_logger().info("ready", parts=list(parts), http_port=settings.http_port)
            ready()
            await stop.wait()
    structlog.get_logger().info("stopped")


def _routes(pool: "Pool", settings: Settings, parts: Collection[str], clock: "Clock") -> FastAPI | None:
    if not {"api", "receiver"} & set(parts):
        return None
    app = web_app()
    if "api" in parts:
        app.include_router(api(pool, settings.terms, clock))
    if "receiver" in parts:
        app.include_router(receiver(pool, settings.secrets))
    return app


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to this application: uvicorn would take them."""
        yield


@asynccontextmanager
async def _serving(app: FastAPI | None, settings: Settings) -> AsyncIterator[None]:
    if app is None:
        yield
        return
    try:
        listening = socket.create_server((settings.http_host, settings.http_port))
    except OSError as error:
        raise CannotListen(f"HTTP_PORT: cannot listen on {settings.http_host}:{settings.http_port}: {error}") from None
    server = _Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=10))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        await serving


def _configure_logs() -> None:
    """Log a JSON object per line; on a terminal, text for people."""
    on_a_terminal = sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer() if on_a_terminal else structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(level=logging.WARNING)
    for library in ("aio_pika", "aiormq"):
        logging.getLogger(library).setLevel(logging.CRITICAL)  # our own line about it is enough
