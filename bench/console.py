"""How long the console's pages take beside many schedules and a long history, each asked for the first time by a fresh
process, and how many rows Postgres reads for one. What a page reads is bounded, so that neither follows the tables.
"""

import asyncio
import http.client
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from statistics import median

from bench.console_rows import SOME_JOB, add_rows
from bench.figures import Figure, Goal
from bench.plan import Plan
from bench.rig import Rig
from shared.postgres.pool import Connection
from stack.ports import LOOPBACK, free_port

WITHIN_200_MS = Goal(at_most=200, of_the_figure=True)
TIMEOUT = 60.0
PAGES = {
    "Now": "/",
    "Now, a week ahead": "/?ahead=week",
    "Schedules": "/schedules",
    "Schedules, by a part of an id": "/schedules?state=all&search=42-remind",
    "Schedules, by the beginning of an id": "/schedules?state=all&search=order-0000042",
    "Schedules, by an id that is not there": "/schedules?state=all&search=no-such-id",
    "Schedules, of a topic": "/schedules?topic=billing.rare",
    "Schedules, paused": "/schedules?state=paused",
    "Schedules, cancelled": "/schedules?state=cancelled",
    "Schedules, due in a window": "/schedules?since=2000-01-01T00:00&until=2100-01-01T00:00",
    "One schedule": f"/schedule?id={SOME_JOB}",
    "Deliveries": "/deliveries",
    "Deliveries, of a host": "/deliveries?state=completed&host=rare.example.com",
    "History": "/history",
    "History, of a person": "/history?by=no-such-user",
}
# What an index alone answered counts as read, too. The index by blocks of the history counts blocks, not rows.
ROWS_READ = r"""
select sum(seq_tup_read + greatest(coalesce(idx_tup_fetch, 0), coalesce((
           select sum(idx_tup_read) from pg_stat_user_indexes as indexes
            where indexes.relid = tables.relid and indexrelname not like '%\_at\_idx'), 0)))::bigint
  from pg_stat_user_tables as tables
"""


@dataclass(slots=True)
class Asked:
    milliseconds: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    await rig.empty()
    async with rig.database() as database:
        await add_rows(database, plan.console_jobs)
        pages = {name: Asked() for name in PAGES}
        for _ in range(plan.rounds):
            port = free_port()
            with rig.service("console", CONSOLE_HOST=LOOPBACK, CONSOLE_PORT=str(port)):
                # The first connection to Postgres is not part of what is measured.
                await asyncio.to_thread(_ask, port, "/bulk")
                for name, path in PAGES.items():
                    await _measure(database, port, path, pages[name], plan.seconds)
    for name, asked in pages.items():
        rows = f"{median(asked.rows):,.0f} rows"
        yield Figure(name, median(asked.milliseconds), "ms", goal=WITHIN_200_MS, note=rows)
    await rig.empty()


async def _measure(database: Connection, port: int, path: str, asked: Asked, seconds: float) -> None:
    before = await _rows_read(database, seconds)
    asked.milliseconds.append(await asyncio.to_thread(_ask, port, path))
    asked.rows.append(await _rows_read(database, seconds) - before)


async def _rows_read(database: Connection, seconds: float) -> int:
    # Postgres adds up what a connection has read when it has been idle for a second, at the latest.
    await asyncio.sleep(seconds)
    await database.execute("select pg_stat_clear_snapshot()")
    read: int = await database.fetchval(ROWS_READ)
    return read


def _ask(port: int, path: str) -> float:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=TIMEOUT)
    began = time.perf_counter()
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
    finally:
        connection.close()
    if answer.status != http.HTTPStatus.OK:
        raise RuntimeError(f"{path} was answered with {answer.status}")
    return (time.perf_counter() - began) * 1000
