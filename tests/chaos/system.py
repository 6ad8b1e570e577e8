"""The system that a chaos run strikes: private stores, a receiver, the application, and two replicas of each service.
The second replica reaches its stores through a proxy. Timeouts and leases are short, so that an outage takes seconds.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import aio_pika
import asyncpg

from shared.amqp.connection import close_quietly
from shared.amqp.topology import declare_topology
from shared.contract.names import Names
from shared.postgres.migrate import migrate
from stack.directory import LOGS, RECORDS
from stack.ports import LOOPBACK, free_port
from stack.postgres import Postgres
from stack.processes import spawn
from stack.rabbitmq import RabbitMQ
from stack.roles import role_of
from stack.services import PROJECT
from stack.stores import stores
from tests.chaos import receiver
from tests.chaos.application import Application, declare_queues
from tests.chaos.faults import BROKER, POSTGRES, SERVICES
from tests.chaos.ledger import Ledger
from tests.chaos.proxy import Proxy
from tests.chaos.replicas import Replica, watch
from tests.chaos.script import REPLICAS

BATCH_SIZE = 50
# A producer has five workers, with a claim each.
IN_FLIGHT = REPLICAS * 5 * BATCH_SIZE
HEARTBEAT = "?heartbeat=3"

SETTINGS = {
    "BATCH_SIZE": str(BATCH_SIZE),
    "PUBLISH_TIMEOUT_SECONDS": "3",
    "SHUTDOWN_GRACE_SECONDS": "10",
    "LEASE_MARGIN_SECONDS": "1",
    "RETRY_BASE_SECONDS": "0.5",
    "RETRY_CAP_SECONDS": "2",
    "BREAKER_FIRST_PAUSE_SECONDS": "0.5",
    "BREAKER_LONGEST_PAUSE_SECONDS": "2",
    "WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
}


@dataclass(slots=True)
class System:
    directory: Path
    postgres: Postgres
    rabbitmq: RabbitMQ
    ledger: Ledger
    app: Application
    replicas: dict[str, list[Replica]]
    proxies: dict[str, Proxy]
    webhook_url: str
    calls_file: Path

    @property
    def all_replicas(self) -> list[Replica]:
        return [replica for of_service in self.replicas.values() for replica in of_service]

    @asynccontextmanager
    async def database(self) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
        """Connect to Postgres as the operator."""
        connection = await asyncpg.connect(self.postgres.url, timeout=30, command_timeout=30)
        try:
            yield connection
        finally:
            with suppress(OSError, TimeoutError, asyncpg.PostgresError):
                await connection.close(timeout=5)

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[aio_pika.abc.AbstractChannel]:
        """Open a channel as the operator."""
        async with asyncio.timeout(30):
            connection = await aio_pika.connect(self.rabbitmq.url)
        try:
            async with connection.channel() as channel:
                yield channel
        finally:
            await close_quietly(connection)

    async def declare(self) -> None:
        """Declare the topology, as a deployment does, and as an operator does again after something was deleted."""
        async with self.channel() as channel:
            await declare_topology(channel, Names())
            await declare_queues(channel, Names())


@asynccontextmanager
async def running_system(directory: Path, seed: int) -> AsyncIterator[System]:
    for old in (directory / LOGS).glob("*"):  # they outlive a run
        old.unlink()
    with stores(directory, fsync=False) as (postgres, rabbitmq), _receiver(directory, seed) as (url, calls):
        async with AsyncExitStack() as running:
            proxies = {
                name: await running.enter_async_context(Proxy(LOOPBACK, port).running())
                for name, port in ((BROKER, rabbitmq.port), (POSTGRES, postgres.port))
            }
            ledger = Ledger(in_flight=IN_FLIGHT)
            app = Application(rabbitmq.url + HEARTBEAT, ledger)
            replicas = {name: _replicas(name, postgres, rabbitmq, proxies, directory) for name in SERVICES}
            made = System(directory, postgres, rabbitmq, ledger, app, replicas, proxies, url, calls)
            await migrate(postgres.url)
            await made.declare()
            await asyncio.to_thread(rabbitmq.settle)
            tasks = [asyncio.create_task(connection.run()) for connection in (app.publishing, app.consuming)]
            try:
                for replica in made.all_replicas:
                    replica.start()
                tasks.append(asyncio.create_task(watch(made.all_replicas, ledger)))
                yield made
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for replica in made.all_replicas:
                    await replica.kill()


def _replicas(
    service: str, postgres: Postgres, rabbitmq: RabbitMQ, proxies: dict[str, Proxy], directory: Path
) -> list[Replica]:
    urls = {
        "DATABASE_URL": postgres.url_of(role_of(service)),
        "AMQP_URL": rabbitmq.url_of(role_of(service)) + HEARTBEAT,
    }
    behind = {
        "DATABASE_URL": _through(proxies[POSTGRES], urls["DATABASE_URL"]),
        "AMQP_URL": _through(proxies[BROKER], urls["AMQP_URL"]),
    }
    return [
        Replica(service, f"{service}-{number}", {**SETTINGS, **way}, directory)
        for number, way in ((1, urls), (2, behind))
    ]


def _through(proxy: Proxy, url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{proxy.port}"))


@contextmanager
def _receiver(directory: Path, seed: int) -> Iterator[tuple[str, Path]]:
    file, port, logs = directory / "calls.jsonl", free_port(), directory / LOGS
    logs.mkdir(parents=True, exist_ok=True)
    child = spawn(
        "receiver",
        [sys.executable, "-m", "tests.chaos.receiver"],
        records=directory / RECORDS,
        log=logs / "receiver.log",
        env={receiver.SEED: str(seed), receiver.PORT: str(port), receiver.FILE: str(file)},
        cwd=PROJECT,
    )
    try:
        yield f"http://{LOOPBACK}:{port}/chaos", file
    finally:
        child.stop()
