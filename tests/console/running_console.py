"""All services on one site, with sample jobs, and the console with two users: what all tests of the console share."""

import asyncio
import http.client
import json
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import aio_pika
import asyncpg

from console.access.passwords import hash_password
from console.access.tokens import TokenHash
from stack.ports import LOOPBACK, free_port
from stack.services import answers
from tests.console.sample_jobs import QUEUE, schedule_samples, send_commands
from tests.support.eventually import PATIENCE, eventually
from tests.support.measured import measured_environment
from tests.support.services import ServiceProcess, service_process
from tests.support.stores import Site, Stores, new_site

Result = TypeVar("Result")
PROGRAM, READER = "token-of-a-program", "token-of-a-reader"
OPERATOR, VIEWER, PASSWORD = "alice", "victor", "correct horse"
# Of the sample jobs, eight and a triggered one are answered, and three call where nothing listens.
ALL_DELIVERED = """
select count(*) filter (where status = 'FAILED') = 3 and count(*) filter (where status = 'COMPLETED') = 9
  from deliveries
"""
SECRET = "whsec_ZHVlYmVsbC1pcy1vbmx5LXRlc3RpbmctdGhpcy1oZXJl"


class LoopThread:
    """Runs coroutines one by one in a thread of its own: the browser's interface holds the loop of the test's."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._thread.submit(self._runner.run, work).result()

    def close(self) -> None:
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    headers: Mapping[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class RunningConsole:
    """`ask` sends one request as any program can; browsers use `url`."""

    url: str
    port: int
    health_port: int
    site: Site
    loop: LoopThread
    process: ServiceProcess
    sessions: dict[str, str] = field(default_factory=dict)

    def ask(
        self, path: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None, port: int = 0
    ) -> Answered:
        connection = http.client.HTTPConnection(LOOPBACK, port or self.port, timeout=PATIENCE)
        try:
            body = None if form is None else urlencode(form)
            given = {"Origin": self.url} if form is not None else {}
            connection.request("GET" if form is None else "POST", path, body, {**given, **(headers or {})})
            answer = connection.getresponse()
            return Answered(answer.status, dict(answer.getheaders()), answer.read().decode())
        finally:
            connection.close()

    def session_of(self, name: str) -> str:
        """Log the user in, once, and return the cookie of the session."""
        if name not in self.sessions:
            answer = self.ask("/log-in", {"name": name, "password": PASSWORD})
            assert answer.status == 303, answer.text
            self.sessions[name] = answer.headers["set-cookie"].partition(";")[0]
        return self.sessions[name]

    def fetch(self, query: str, *arguments: Any) -> list[dict[str, Any]]:
        """Ask the database, as its owner."""

        async def ask() -> list[dict[str, Any]]:
            connection = await asyncpg.connect(self.site.database_url, timeout=PATIENCE)
            try:
                return [dict(row) for row in await connection.fetch(query, *arguments)]
            finally:
                await connection.close(timeout=5)

        return self.loop.run(ask())

    def command(self, *commands: tuple[str, dict[str, Any]]) -> None:
        """Send commands as an application, and wait for the replies."""

        async def send() -> None:
            async with (
                await aio_pika.connect(self.site.amqp_url, timeout=PATIENCE) as connection,
                connection.channel() as channel,
            ):
                await send_commands(channel, self.site.names, list(commands))

        self.loop.run(send())


@contextmanager
def running_console(stores: Stores, directory: Path) -> Iterator[RunningConsole]:
    with ExitStack() as running:
        loop = LoopThread()
        running.callback(loop.close)
        sites = new_site(stores)
        site = loop.run(sites.__aenter__())
        running.callback(lambda: loop.run(sites.__aexit__(None, None, None)))
        running.callback(lambda: loop.run(_delete_queue(site)))
        console = _start(running, site, directory, loop)
        receiver = free_port()
        running.enter_context(
            service_process("examples.receiver", {"RECEIVER_SECRET": SECRET, "RECEIVER_PORT": str(receiver)}, directory)
        )
        loop.run(eventually(lambda: asyncio.to_thread(answers, receiver, "/healthz")))
        loop.run(schedule_samples(site.amqp_url, site.names, f"http://{LOOPBACK}:{receiver}"))
        loop.run(_until(console, ALL_DELIVERED))
        yield console


def _start(running: ExitStack, site: Site, directory: Path, loop: LoopThread) -> RunningConsole:
    addresses = {"WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8"}
    settings = {
        "consumer": {**addresses, "OPERATOR_USERS": "duebell_console"},
        "producer": {},
        "delivery": {**addresses, "WEBHOOK_SECRETS": json.dumps({"demo": SECRET})},
    }
    for name, own in settings.items():
        running.enter_context(service_process(name, site, directory, **own))
    port, health_port = free_port(), free_port()
    hashed = hash_password(PASSWORD)
    process = running.enter_context(
        service_process(
            "console",
            site,
            directory,
            CONSOLE_PORT=str(port),
            METRICS_PORT=str(health_port),
            CONSOLE_USERS=f"{OPERATOR}:operator+payloads:{hashed} {VIEWER}:viewer:{hashed} robot:viewer:- "
            f"program:operator+payloads:{TokenHash.of(PROGRAM)} reader:viewer:{TokenHash.of(READER)}",
            CONSOLE_TRUSTED_PROXIES="127.0.0.2/32",
            **measured_environment(),
        )
    )
    running.callback(process.terminate)  # a process that is killed does not tell what it has covered
    console = RunningConsole(f"http://{LOOPBACK}:{port}", port, health_port, site, loop, process)
    loop.run(_until_ready(console))
    return console


async def _until_ready(console: RunningConsole) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            assert console.process.is_running, console.process.log.read_text()
            try:
                if (await asyncio.to_thread(console.ask, "/readyz", port=console.health_port)).status == 200:
                    await asyncio.to_thread(console.ask, "/log-in")
                    return
            except OSError:
                pass
            await asyncio.sleep(0.1)


async def _until(console: RunningConsole, condition: str) -> None:
    connection = await asyncpg.connect(console.site.database_url, timeout=PATIENCE)
    try:
        await eventually(lambda: connection.fetchval(condition))
    finally:
        await connection.close(timeout=5)


async def _delete_queue(site: Site) -> None:
    async with await aio_pika.connect(site.amqp_url, timeout=PATIENCE) as connection, connection.channel() as channel:
        await channel.queue_delete(site.prefix + QUEUE)
