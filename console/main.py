"""Starts the console: settings, users, health, the connections to Postgres and RabbitMQ, and the web server. It reads
from Postgres, and acts by commands to RabbitMQ alone.
"""

import argparse
import asyncio
import getpass
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import uvicorn
from prometheus_client import CollectorRegistry

from console.access.passwords import hash_password
from console.access.sessions import SessionKey
from console.access.tokens import TokenHash, make_token
from console.access.users import NO_PASSWORD, User, parse_users
from console.commands import CommandSender
from console.kept import KeptMessages
from console.metrics import Metrics
from console.settings import CONSOLE_PLANNER_SETTINGS, ConsoleSettings
from console.web.app import make_app
from console.web.context import Console
from console.web.rendering import Renderer
from shared.amqp.connection import Broker
from shared.contract.names import Names
from shared.errors import CannotStart
from shared.postgres.pool import open_pool, wait_for_schema
from shared.runtime.health import readiness_checks, serve_health
from shared.runtime.logs import configure_logs, get_log
from shared.runtime.loops import Stop, Watchdog, first_of, run_until_stop, waiting_outside
from shared.runtime.service import run_service
from shared.runtime.settings import load_settings

MAX_CONNECTIONS = 1000
MIN_PASSWORD_LENGTH = 8
# At the stop, requests in flight have this long.
FINISH_SECONDS = 5


class WebServer(uvicorn.Server):
    """uvicorn's server, which leaves signals to the service."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()

    def end(self) -> None:
        self.should_exit = True


async def serve(settings: ConsoleSettings, users: dict[str, User], stop: Stop) -> None:
    registry = CollectorRegistry()
    watchdog = Watchdog(registry)
    names = Names(settings.amqp_prefix)
    broker = Broker(settings.amqp_url, name="duebell-console", names=names)
    queues = Broker(settings.amqp_url, name="duebell-console-queues", names=names)
    async with (
        open_pool(settings.database_url, "duebell-console", size=8, **CONSOLE_PLANNER_SETTINGS) as pool,
        broker.connected(),
        queues.connected(),
        serve_health(settings.metrics_host, settings.metrics_port, watchdog, readiness_checks(pool, [broker, queues])),
    ):
        await first_of(wait_for_schema(pool), stop.wait())
        console = Console(
            settings=settings,
            users=users,
            session_key=SessionKey(settings.console_session_key.get_secret_value()),
            pool=pool,
            names=names,
            commands=CommandSender(
                broker, names, settings.amqp_url, settings.reply_timeout_seconds, settings.max_payload_bytes, stop
            ),
            kept=KeptMessages(queues, broker, names),
            renderer=Renderer(settings.prefix),
            metrics=Metrics(registry),
            stop=stop,
        )
        async with asyncio.TaskGroup() as tasks:
            web = watchdog.watched("web", _serve_web(console, stop))
            tasks.create_task(run_until_stop(web, stop, "web"))


async def _serve_web(console: Console, stop: Stop) -> None:
    settings = console.settings
    server = WebServer(
        uvicorn.Config(
            make_app(console),
            host=settings.console_host,
            port=settings.console_port,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=FINISH_SECONDS,
        )
    )

    async def end_at_the_stop() -> None:
        await stop.wait()
        server.end()

    async with asyncio.TaskGroup() as tasks:
        ending = tasks.create_task(end_at_the_stop())
        try:
            with waiting_outside():
                await server.serve()
        except SystemExit:
            raise CannotStart(
                f"CONSOLE_PORT: cannot listen on {settings.console_host}:{settings.console_port}"
            ) from None
        finally:
            ending.cancel()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m console", description="Duebell's web console.")
    commands = parser.add_subparsers(dest="command")
    hashing = commands.add_parser("hash-password", help="print an entry for CONSOLE_USERS; the password is asked for")
    making = commands.add_parser("make-token", help="print a token for a program that uses the API, and its entry")
    for command in (hashing, making):
        command.add_argument("name", help="the user's name")
        command.add_argument("rights", nargs="?", default="viewer", help="viewer or operator, and +payloads")
    given = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    if given.command == "make-token":
        return print_token(given.name, given.rights)
    return print_user(given.name, given.rights) if given.command else run_console()


def run_console() -> int:
    settings = load_settings(ConsoleSettings)
    configure_logs("console", settings.log_level)
    try:
        users = settings.read_users()
    except CannotStart as error:
        get_log().error("cannot_start", problem=str(error))
        return 2
    return run_service(lambda stop: serve(settings, users, stop), settings.shutdown_grace_seconds)


def print_token(name: str, rights: str) -> int:
    """Print a new token, which is kept nowhere, and the user's entry for CONSOLE_USERS."""
    try:
        parse_users(f"{name}:{rights}:{NO_PASSWORD}")
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    token = make_token()
    sys.stderr.write("The first line is the token, for the program; the second is the entry for CONSOLE_USERS.\n")
    sys.stdout.write(f"{token}\n{name}:{rights}:{TokenHash.of(token)}\n")
    return 0


def print_user(name: str, rights: str) -> int:
    """Ask for a password, on a terminal twice, and print the user's entry for CONSOLE_USERS."""
    if sys.stdin.isatty():
        password = getpass.getpass()
        if getpass.getpass("Again: ") != password:
            sys.stderr.write("the passwords differ\n")
            return 2
    else:
        password = sys.stdin.readline().rstrip("\n")
    if len(password) < MIN_PASSWORD_LENGTH:
        sys.stderr.write(f"the password needs at least {MIN_PASSWORD_LENGTH} characters\n")
        return 2
    sys.stdout.write(f"{name}:{rights}:{hash_password(password)}\n")
    return 0
