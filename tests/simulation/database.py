"""A real Postgres whose clock the simulation sets. The services' statements call `now()` and `clock_timestamp()`, and
functions of these names that come first in the search path return the simulation's time. So the services run exactly
as in production, and no test passes an instant.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import asyncpg

from tests.support.eventually import PATIENCE, eventually
from tests.support.stores import Stores, new_site

PostgresConnection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

BEGINNING = datetime(2030, 6, 1, 12, 0, 0, tzinfo=UTC)

# As in Postgres itself, now() stands still for the length of a transaction. Defaults were bound to the real now() when
# the tables were made.
CLOCK = """
create schema sim;
create table sim.clock (at timestamptz not null);
insert into sim.clock values ('2030-06-01T12:00:00Z');
create function sim.clock_timestamp() returns timestamptz stable language sql as 'select at from sim.clock';
create function sim.now() returns timestamptz stable language plpgsql as $$
declare began text := current_setting('sim.transaction_began', true);
begin
    if coalesce(began, '') = '' then
        began := set_config('sim.transaction_began', sim.clock_timestamp()::text, true);
    end if;
    return began::timestamptz;
end $$;
alter table deliveries alter next_attempt_at set default sim.now();
alter table delivery_announcements alter announce_at set default sim.now();
"""
EMPTY = "delete from delivery_announcements; delete from deliveries; delete from jobs"
JOBS = "select id, status, revision, life, version, sequence, next_run_at, retry_at from jobs"
DELIVERIES = """
select id, job_id, idempotency_key, status, version, retry_count, max_retries, next_attempt_at,
       (select count(*) from delivery_attempts where delivery_id = deliveries.id) as attempts,
       exists (select from delivery_announcements where delivery_id = deliveries.id) as unannounced
  from deliveries
"""


@dataclass(slots=True)
class SimDatabase:
    url: str
    observer: PostgresConnection
    runner: asyncio.Runner
    now: datetime = BEGINNING
    spare: list[PostgresConnection] = field(default_factory=list)  # kept for the next history: connecting is slow
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def connect(self) -> PostgresConnection:
        if self.spare:
            return self.spare.pop()
        return await asyncpg.connect(
            self.url, timeout=10, command_timeout=30, server_settings={"search_path": "sim, pg_catalog, public"}
        )

    async def reset(self) -> None:
        await self._execute(EMPTY)
        await self.set_clock(BEGINNING)

    async def set_clock(self, now: datetime) -> None:
        self.now = now
        await self._execute("update sim.clock set at = $1", now)

    async def pass_time(self, seconds: int) -> None:
        await self.set_clock(self.now + timedelta(seconds=seconds))

    async def read_jobs(self) -> dict[str, Any]:
        return {row["id"]: row for row in await self._fetch(JOBS)}

    async def read_deliveries(self) -> dict[int, Any]:
        return {row["id"]: row for row in await self._fetch(DELIVERIES)}

    async def waits_for_a_lock(self, pid: int) -> bool:
        [row] = await self._fetch("select cardinality(pg_blocking_pids($1)) > 0 as waits", pid)
        return bool(row["waits"])

    async def end_backend(self, pid: int) -> None:
        """Terminate the backend. Returns when it is gone and its locks are free."""
        await self._fetch("select pg_terminate_backend($1)", pid)
        await eventually(lambda: self._is_gone(pid))

    async def _is_gone(self, pid: int) -> bool:
        return not await self._fetch("select from pg_stat_activity where pid = $1", pid)

    async def _execute(self, sql: str, *arguments: object) -> None:
        async with self._one_at_a_time:
            await self.observer.execute(sql, *arguments)

    async def _fetch(self, sql: str, *arguments: object) -> list[Any]:
        async with self._one_at_a_time:
            return list(await self.observer.fetch(sql, *arguments))


@contextmanager
def a_sim_database(stores: Stores) -> Iterator[SimDatabase]:
    with asyncio.Runner() as runner:
        opening = new_site(stores)
        site = runner.run(opening.__aenter__())
        observer = runner.run(asyncpg.connect(site.database_url, timeout=PATIENCE, command_timeout=30))
        try:
            runner.run(observer.execute(CLOCK))
            database = SimDatabase(site.database_url, observer, runner)
            yield database
            for connection in database.spare:
                connection.terminate()
        finally:
            runner.run(observer.close(timeout=5))
            runner.run(opening.__aexit__(None, None, None))
