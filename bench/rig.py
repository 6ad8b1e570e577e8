"""What benchmarks run on: a private Postgres and RabbitMQ as production would set them up, and the services on them as
real processes, each with its own user of either store.

Everything that is confirmed or committed is on disk: Postgres with fsync and synchronous_commit on, RabbitMQ with
quorum queues, whose log is synced before a confirm. No production Postgres runs with its defaults of 128 MB of buffers
and a checkpoint at each gigabyte in production, so those are raised.
"""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import aio_pika
import asyncpg
import psutil  # type: ignore[import-untyped]
from aio_pika.abc import AbstractChannel

from bench.figures import Cost
from bench.store_processes import StoreProcesses
from shared.contract.names import Names
from stack.directory import LOGS, run_directory
from stack.services import Service, ServiceContext, prepare
from stack.stores import stores

POSTGRES = {
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
}
TABLES = (
    "jobs, triggers, job_labels, bulks, deliveries, delivery_attempts, delivery_announcements, "
    "delayed_messages, history"
)
QUEUE = "bench.due"
NAMES = Names()
NOTHING = Cost(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Rig:
    context: ServiceContext
    stores: StoreProcesses

    @asynccontextmanager
    async def database(self) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
        connection = await asyncpg.connect(self.context.database_url, timeout=10, command_timeout=600)
        try:
            yield connection
        finally:
            await connection.close(timeout=5)

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[AbstractChannel]:
        async with (
            await aio_pika.connect(self.context.amqp_url, timeout=10) as connection,
            connection.channel(publisher_confirms=True) as channel,
        ):
            yield channel

    @asynccontextmanager
    async def copied(self, name: str) -> AsyncIterator["Rig"]:
        """Yield the same broker with a copy of the database. No session may be connected to the database."""
        copy = self._on_database(name)
        home, here = self._on_database("postgres"), urlsplit(self.context.database_url).path.strip("/")
        async with home.database() as database:
            await database.execute(f"create database {name} template {here}")
            try:
                yield copy
            finally:
                await database.execute(f"drop database {name} with (force)")

    def _on_database(self, name: str) -> "Rig":
        def moved(url: str) -> str:
            return urlsplit(url)._replace(path=f"/{name}").geturl()

        own = {
            service: {key: moved(value) if key == "DATABASE_URL" else value for key, value in settings.items()}
            for service, settings in self.context.own.items()
        }
        context = replace(self.context, database_url=moved(self.context.database_url), own=own)
        return replace(self, context=context)

    async def purge(self) -> None:
        """Purge the queue of the application."""
        async with self.channel() as channel:
            queue = await channel.get_queue(QUEUE)
            await queue.purge()

    async def empty(self, binding: str = "due.event.#") -> None:
        """Tables and queues as at the beginning, and a quorum queue of an application's for due events."""
        async with self.database() as database:
            await database.execute(f"truncate {TABLES}")
            await database.execute("checkpoint")
        async with self.channel() as channel:
            for name in NAMES.queues:
                queue = await channel.get_queue(name)
                await queue.purge()
        await self._bind(QUEUE, binding)

    @asynccontextmanager
    async def bound(self, name: str, binding: str) -> AsyncIterator[None]:
        """Bind another queue to some of the events until the block ends, so that later benchmarks do not fill it."""
        await self._bind(name, binding)
        try:
            yield
        finally:
            async with self.channel() as channel:
                await channel.queue_delete(name)

    async def _bind(self, name: str, binding: str) -> None:
        async with self.channel() as channel:
            await channel.queue_delete(name)
            queue = await channel.declare_queue(name, durable=True, arguments={"x-queue-type": "quorum"})
            await queue.bind(NAMES.events, binding)

    @contextmanager
    def service(self, module: str, *, name: str | None = None, **settings: str) -> Iterator["Running"]:
        """Start a process of the service, and yield it when it is ready."""
        service = Service(replace(self.context, settings=settings), module, name)
        service.start()
        try:
            service.wait_ready()
            yield Running(psutil.Process(service.pid), self.stores)
        finally:
            service.stop()


@dataclass(frozen=True, slots=True)
class Running:
    """A process that can be looked at, and held back until its work is laid out."""

    process: psutil.Process
    stores: StoreProcesses

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Frozen for the length of the block, which should be well within the broker's patience: twenty seconds."""
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)

    def cpu_seconds(self) -> float:
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def resident_mb(self) -> float:
        return float(self.process.memory_info().rss / 2**20)

    @contextmanager
    def cost_of(self, items: int) -> Iterator["Bill"]:
        bill, before, stores_before = Bill(), self.cpu_seconds(), self.stores.cpu_seconds()
        yield bill
        after, stores_after = self.cpu_seconds(), self.stores.cpu_seconds()
        postgres, rabbitmq = (now - then for now, then in zip(stores_after, stores_before, strict=True))
        per_1000 = 1e6 / items
        bill.cost = Cost((after - before) * per_1000, self.resident_mb(), postgres * per_1000, rabbitmq * per_1000)


@dataclass(slots=True)
class Bill:
    """Filled in when the block ends."""

    cost: Cost = NOTHING


@contextmanager
def a_rig() -> Iterator[Rig]:
    with run_directory("bench") as directory, _on(directory) as rig:
        yield rig


@contextmanager
def _on(directory: Path) -> Iterator[Rig]:
    with stores(directory, settings=POSTGRES) as (postgres, rabbitmq):
        context = ServiceContext.on(postgres, rabbitmq, directory, directory / LOGS)
        prepare(context)
        yield Rig(context, StoreProcesses(psutil.Process(postgres.pid), psutil.Process(rabbitmq.pid)))
