"""The Postgres and RabbitMQ that the tests run on: what `stack/` starts; containers with TEST_SERVICES=docker; or, with
TEST_SERVICES=given, the ones that DATABASE_URL and AMQP_URL name. With TEST_SERVICES=pooler they are those of `stack/`,
and the services reach Postgres by way of PgBouncer. Each test gets a database of its own, cloned from a migrated
template, and exchanges and queues behind a prefix of its own.
"""

import asyncio
import hashlib
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aio_pika
import asyncpg
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from shared.amqp.topology import declare_topology
from shared.contract.names import Names
from shared.postgres.migrate import migrate
from stack.directory import STACK, run_directory
from stack.postgres import Postgres
from stack.rabbitmq import MANAGEMENT, RabbitMQ
from stack.roles import CONSOLE_USER, READER, role_of
from stack.services import CONSOLE, SERVICES
from stack.stores import stores as started_stores
from tests.support.eventually import PATIENCE
from tests.support.pgbouncer import pgbouncer
from tools.engine.pinned import pinned_images

TEMPLATE = "duebell_template"
PLUGINS = ("rabbitmq_prometheus", MANAGEMENT)
PREFIX = "(test_[0-9a-f]+[.])?"
# A file system in memory. On a disk, creating and dropping one database costs a quarter of a second of system time.
MEMORY = Path("/dev/shm")
CONTAINER_SECONDS = 120
MIN_MEMORY_BYTES = 3 * 1024**3
SETTINGS = {"max_wal_size": "256MB"}  # the default is 1 GB, for each of several servers

# The users of Postgres and of RabbitMQ. The console reads as one, and sends commands as another.
_ROLES = {
    **{service: (role_of(service), role_of(service)) for service in SERVICES},
    "reader": (READER, READER),
    CONSOLE: (READER, CONSOLE_USER),
}


@dataclass(frozen=True, slots=True)
class Stores:
    """The servers. Handles are there only when stack/ started them."""

    database_url: str
    amqp_url: str
    postgres: Postgres | None = None
    rabbitmq: RabbitMQ | None = None
    pooler_port: int | None = None

    def database(self, name: str) -> str:
        return _in_database(self.database_url, name)


@dataclass(frozen=True, slots=True)
class Site:
    """One test's share: its database and its prefix, as an operator reaches them; and the addresses of each service and
    of the reader, with their own rights."""

    database_url: str
    amqp_url: str
    prefix: str
    own: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    is_pooled: bool = False

    @property
    def names(self) -> Names:
        return Names(self.prefix)

    @property
    def environment(self) -> dict[str, str]:
        """An operator's."""
        return {"DATABASE_URL": self.database_url, "AMQP_URL": self.amqp_url, "AMQP_PREFIX": self.prefix}

    def environment_of(self, service: str) -> dict[str, str]:
        """Given stores have no roles: then every service connects as the operator."""
        return {**self.environment, **self.own.get(service, {})}

    def database_url_of(self, service: str) -> str:
        """Return how a service in the process of the test reaches the database: as the operator, and behind a pooler
        with its own role, which has the settings that the service needs.
        """
        return self.environment_of(service)["DATABASE_URL"] if self.is_pooled else self.database_url


def _in_database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


@contextmanager
def store_directory(name: str) -> Iterator[Path]:
    """A directory for the data of stores: in memory where there is room, else under `.stack/`.

    No test needs data to survive the machine."""
    root = STACK
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MIN_MEMORY_BYTES:
        root = MEMORY / f"duebell-{os.getuid()}-{hashlib.sha256(str(STACK).encode()).hexdigest()[:8]}"
        root.mkdir(mode=0o700, exist_ok=True)
    with run_directory(name, root) as directory:
        yield directory


@contextmanager
def running_stores(directory: Path) -> Iterator[Stores]:
    match os.environ.get("TEST_SERVICES", "stack"):
        case "docker":
            with _containers() as started:
                yield started
        case "given":
            yield Stores(os.environ["DATABASE_URL"], os.environ["AMQP_URL"])
        case "pooler":
            with _servers(directory) as servers, _behind_pgbouncer(servers, directory) as pooled:
                yield pooled
        case _:
            with _servers(directory) as servers:
                yield servers


@contextmanager
def _servers(directory: Path) -> Iterator[Stores]:
    options: dict[str, Any] = {"fsync": False, "settings": SETTINGS, "plugins": PLUGINS, "prefix": PREFIX}
    with started_stores(directory, **options) as (postgres, rabbitmq):
        yield Stores(postgres.url, rabbitmq.url, postgres, rabbitmq)


@contextmanager
def _behind_pgbouncer(servers: Stores, directory: Path) -> Iterator[Stores]:
    assert servers.postgres is not None
    passwords = {role: urlsplit(servers.postgres.url_of(role)).password or "" for role, _ in _ROLES.values()}
    with pgbouncer(servers.postgres.port, directory, passwords) as port:
        yield replace(servers, pooler_port=port)


@contextmanager
def _containers() -> Iterator[Stores]:
    """Start the images that docker-compose.yml pins."""
    images = pinned_images()
    postgres = DockerContainer(images["postgres"]).with_env("POSTGRES_PASSWORD", "test").with_exposed_ports(5432)
    postgres.with_command("postgres -c fsync=off -c max_connections=200")
    # The server that sets the database up says that it is ready on one stream, and the one behind it on the other.
    ready = LogMessageWaitStrategy("ready to accept connections", predicate_streams_and=True)
    postgres.waiting_for(ready.with_startup_timeout(CONTAINER_SECONDS))
    rabbitmq = DockerContainer(images["rabbitmq"]).with_exposed_ports(5672)
    ready = LogMessageWaitStrategy("Server startup complete")
    rabbitmq.waiting_for(ready.with_startup_timeout(CONTAINER_SECONDS))
    with postgres, rabbitmq:
        yield Stores(
            f"postgresql://postgres:test@{_address(postgres, 5432)}/postgres",
            f"amqp://guest:guest@{_address(rabbitmq, 5672)}/",
        )


def _address(container: DockerContainer, port: int) -> str:
    return f"{container.get_container_host_ip()}:{container.get_exposed_port(port)}"


async def make_template(stores: Stores) -> None:
    async with _admin(stores) as admin:
        await admin.execute(f"drop database if exists {TEMPLATE}")
        await admin.execute(f"create database {TEMPLATE}")
    await migrate(stores.database(TEMPLATE))


@asynccontextmanager
async def new_site(stores: Stores, *, delete_queues: bool = True, template: str = TEMPLATE) -> AsyncIterator[Site]:
    """A database that is a copy of the template, and exchanges and queues; `template0` is without Duebell's schema, and
    leaves schema, exchanges and queues to the test."""
    async with new_database(stores, template) as site:
        try:
            if template == TEMPLATE:
                await put_topology(site)
            yield site
        finally:
            if delete_queues:
                await remove_topology(site)


@asynccontextmanager
async def new_database(stores: Stores, template: str = TEMPLATE) -> AsyncIterator[Site]:
    """A site without exchanges and queues, which take longer than the database."""
    name = f"test_{secrets.token_hex(6)}"
    async with _admin(stores) as admin:
        # The default, to write every block of the copy to the log, takes three times as long on a small database.
        by_files = "strategy file_copy" if admin.get_server_version() >= (15,) else ""  # version 14 knows no other way
        await admin.execute(f"create database {name} template {template} {by_files}")
    try:
        is_pooled = stores.pooler_port is not None
        yield Site(stores.database(name), stores.amqp_url, f"{name}.", _own(stores, name), is_pooled)
    finally:
        # A connection of its own: the test may have restarted the server.
        async with _admin(stores) as admin:
            await admin.execute(f"drop database if exists {name} with (force)")


def _own(stores: Stores, database: str) -> dict[str, dict[str, str]]:
    if stores.postgres is None or stores.rabbitmq is None:
        return {}
    own = {}
    for name, (role, user) in _ROLES.items():
        direct = _in_database(stores.postgres.url_of(role), database)
        own[name] = {"DATABASE_URL": direct, "AMQP_URL": stores.rabbitmq.url_of(user)}
        if stores.pooler_port is not None:
            pooled = direct.replace(f":{stores.postgres.port}/", f":{stores.pooler_port}/")
            own[name] |= {"DATABASE_URL": pooled, "DATABASE_DIRECT_URL": direct}
    return own


async def put_topology(site: Site) -> None:
    """What a deployment does before it starts services."""
    async with await aio_pika.connect(site.amqp_url, timeout=PATIENCE) as connection, connection.channel() as channel:
        await declare_topology(channel, site.names)


async def remove_topology(site: Site, *, exchanges: bool = True) -> None:
    async with await aio_pika.connect(site.amqp_url, timeout=PATIENCE) as connection, connection.channel() as channel:
        for queue in site.names.queues:
            await channel.queue_delete(queue)
        for exchange in site.names.exchanges if exchanges else ():
            await channel.exchange_delete(exchange)


@asynccontextmanager
async def _admin(stores: Stores) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(stores.database_url, timeout=PATIENCE)
    try:
        yield connection
    finally:
        await connection.close(timeout=5)


def make_template_now(stores: Stores) -> None:
    asyncio.run(make_template(stores))
