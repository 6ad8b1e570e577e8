"""Behind PgBouncer in transaction mode, where each transaction may get another session of the server: the services, the
console, the migrations and the command line do their work, and leave nothing behind in the sessions.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from shared.errors import UnsuitableSession
from shared.postgres.migrate import migrate, newest_version
from shared.postgres.pool import open_pool
from stack.ports import free_port
from stack.services import SERVICES
from tests.cli.command_line import an_operator
from tests.support.application import Application
from tests.support.builders import a_request, in_seconds
from tests.support.eventually import PATIENCE, eventually
from tests.support.health import health_of, is_ready
from tests.support.job_rows import insert_due
from tests.support.pgbouncer import pgbouncer
from tests.support.receiver import a_receiver
from tests.support.services import service_process
from tests.support.stores import Site, Stores, store_directory

ADVISORY_LOCKS = """
select count(*) from pg_locks
 where locktype = 'advisory' and database = (select oid from pg_database where datname = $1)
"""


@dataclass(frozen=True, slots=True)
class Pooler:
    """Addresses by way of PgBouncer. Its sessions are few, so that they change hands all the time."""

    site: Site
    port: int

    def address(self, direct: str) -> str:
        return direct.replace(f":{urlsplit(direct).port}/", f":{self.port}/")

    def direct(self, service: str) -> str:
        """With TEST_SERVICES=pooler, the usual address leads to a pooler, whose sessions are not few."""
        given = self.site.environment_of(service)
        return given.get("DATABASE_DIRECT_URL", given["DATABASE_URL"])

    def environment_of(self, service: str) -> dict[str, str]:
        given = {**self.site.environment_of(service), "DATABASE_URL": self.address(self.direct(service))}
        given.pop("DATABASE_DIRECT_URL", None)
        return given


@pytest.fixture
def pooler(stores: Stores, site: Site) -> Iterator[Pooler]:
    yield from _pooler(stores, site)


@pytest.fixture
def pooler_that_mixes_up_statements(stores: Stores, site: Site) -> Iterator[Pooler]:
    """As PgBouncer 1.21 to 1.23 do unless they are told otherwise."""
    yield from _pooler(stores, site, max_prepared_statements=0)


def _pooler(stores: Stores, site: Site, **settings: object) -> Iterator[Pooler]:
    if not site.own:
        pytest.skip("the tests did not start the stores, which have no roles")
    addresses = [site.database_url, *(site.environment_of(role)["DATABASE_URL"] for role in (*SERVICES, "reader"))]
    passwords = {parts.username or "": parts.password or "" for parts in map(urlsplit, addresses)}
    with (
        store_directory("pooler") as directory,
        pgbouncer(
            urlsplit(stores.database_url).port or 0, directory, passwords, default_pool_size=2, **settings
        ) as port,
    ):
        yield Pooler(site, port)


async def test_the_services_do_their_work_and_the_producer_only_polls(
    pooler: Pooler, app: Application, tmp_path: Path
) -> None:
    health = str(free_port())
    with ExitStack() as running:
        hooks = {"WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8"}
        services = [
            running.enter_context(service_process(service, pooler.environment_of(service), tmp_path, **hooks))
            for service in [*SERVICES, *SERVICES]
        ]
        watched = running.enter_context(
            service_process("producer", pooler.environment_of("producer"), tmp_path, METRICS_PORT=health)
        )
        await eventually(lambda: is_ready(int(health)))
        assert json.loads((await health_of(int(health)))[1]) == {"broker": True, "database": True, "polling_only": True}
        assert watched.said("polling_only")
        async with a_receiver() as receiver:
            for number in range(40):
                webhook = {"url": receiver.url} if number % 2 else None
                await app.send(a_request(id=f"job-{number}", at=in_seconds(number / 20), webhook=webhook))
            await app.hears(40)
            await receiver.called(20)
        assert len({event.content["idempotency_key"] for event in app.heard}) == 40
        waited = ("lane_waits", "batch_waits", "dispatch_waits", "recording_waits", "announcing_waits")
        assert [line for service in services for event in waited for line in service.said(event)] == []


async def test_the_console_reads_behind_it(pooler: Pooler, tmp_path: Path) -> None:
    reader = pooler.environment_of("reader")["DATABASE_URL"]
    ports = {"METRICS_PORT": str(free_port()), "CONSOLE_PORT": str(free_port())}
    environment = {**pooler.site.environment, "DATABASE_URL": reader, "CONSOLE_OPEN_ON_LOOPBACK": "true"}
    with service_process("console", environment, tmp_path, **ports):
        await eventually(lambda: is_ready(int(ports["METRICS_PORT"])))
        status, page = await health_of(int(ports["CONSOLE_PORT"]), "/schedules")
        assert (status, "schedules" in page.lower()) == (200, True)


async def test_with_a_direct_address_the_producer_listens(pooler: Pooler, tmp_path: Path) -> None:
    health = str(free_port())
    environment = {**pooler.environment_of("producer"), "DATABASE_DIRECT_URL": pooler.direct("producer")}
    with service_process("producer", environment, tmp_path, METRICS_PORT=health) as producer:
        await eventually(lambda: is_ready(int(health)))
        assert "polling_only" not in (await health_of(int(health)))[1]
        assert not producer.said("polling_only")


async def test_a_role_without_the_settings_is_told_what_to_set(pooler: Pooler) -> None:
    """The operator's has none of them: a commit might not wait for the disk."""
    async with open_pool(pooler.address(pooler.site.database_url), "test", 1) as pool:
        with pytest.raises(UnsuitableSession, match="alter role duebell set statement_timeout = '30000'"):
            await pool.fetchval("select 1")


async def test_a_pooler_that_mixes_up_statements_is_not_used(pooler_that_mixes_up_statements: Pooler) -> None:
    pooler = pooler_that_mixes_up_statements
    async with open_pool(pooler.environment_of("consumer")["DATABASE_URL"], "test", 1) as pool:
        with pytest.raises(UnsuitableSession, match="set max_prepared_statements"):
            await pool.fetchval("select 1")


async def test_migrations_leave_no_lock_behind(pooler: Pooler, stores: Stores, database: Any) -> None:
    await database.execute("create database behind_a_pooler")
    try:
        url = pooler.address(stores.database("behind_a_pooler"))
        assert len(await migrate(url)) == newest_version()
        assert await migrate(url) == []
        assert await database.fetchval(ADVISORY_LOCKS, "behind_a_pooler") == 0
    finally:
        await database.execute("drop database behind_a_pooler with (force)")


async def test_the_command_line_leaves_no_session_that_only_reads(pooler: Pooler) -> None:
    behind = replace(pooler.site, database_url=pooler.address(pooler.site.database_url))
    async with an_operator(behind) as duebell:
        for _ in range(3):
            assert (await duebell("list")).status == 0
    for _ in range(3):
        writing = await asyncpg.connect(behind.database_url, timeout=PATIENCE)
        await insert_due(writing, 1, prefix=f"{id(writing)}-")
        await writing.close(timeout=5)
