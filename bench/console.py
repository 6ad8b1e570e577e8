"""How long the console's pages and calls of its API take beside many schedules and a long history, each asked for the
first time by a fresh process, and how many rows Postgres reads for one. What each reads is bounded, so that neither
follows the tables.
"""

import asyncio
import http.client
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from statistics import median

import orjson

from bench.console_rows import BUSY_JOB, SOME_JOB, add_rows, remove_rows
from bench.figures import Cost, Figure, Goal, middle
from bench.plan import Plan
from bench.rig import Rig
from console.api.operation import API_PATH
from shared.postgres.pool import Connection
from stack.ports import LOOPBACK, free_port

WITHIN_200_MS = Goal(at_most=200, of_the_figure=True)
TIMEOUT = 60.0
PAGES = {
    "Now": "/",
    "Now, a week ahead": "/?ahead=week",
    "Schedules": "/schedules",
    "Schedules, by a part of an id": "/schedules?state=all&search=42-remind",
    "Schedules, pending, by a part of an id": "/schedules?search=42-remind",
    "Schedules, by the beginning of an id": "/schedules?state=all&search=order-0000042",
    "Schedules, by an id that is not there": "/schedules?state=all&search=no-such-id",
    "Schedules, of a topic": "/schedules?topic=billing.rare",
    "Schedules, of a topic that many have": "/schedules?topic=billing",
    "Schedules, with a label that few have": "/schedules?label=team=rare",
    "Schedules, with a label that many have": "/schedules?label=env=prod",
    "Schedules, with both": "/schedules?label=env=prod,team=rare",
    "Schedules, paused": "/schedules?state=paused",
    "Schedules, done": "/schedules?state=done",
    "Schedules, cancelled": "/schedules?state=cancelled",
    "Schedules, due in a window": "/schedules?since=2000-01-01T00:00&until=2100-01-01T00:00",
    "One schedule": f"/schedule?id={SOME_JOB}",
    "One schedule that rings every few seconds": f"/schedule?id={BUSY_JOB}",
    "Deliveries": "/deliveries",
    "Deliveries, open": "/deliveries?state=open",
    "Deliveries, of a host": "/deliveries?state=completed&host=rare.example.com",
    "Deliveries, of a schedule with many": f"/deliveries?state=failed&job={BUSY_JOB}",
    "One delivery": "/delivery?id=20",
    "Delayed": "/delayed",
    "Delayed, of an exchange": "/delayed?exchange=bench-console-7",
    "History": "/history",
    "History, of a person": "/history?by=no-such-user",
    "API: schedules, 500": f"{API_PATH}/schedules?limit=500",
    "API: schedules, with a label": f"{API_PATH}/schedules?limit=500&label=env=prod",
    "API: schedule": f"{API_PATH}/schedule?id={SOME_JOB}",
    "API: why": f"{API_PATH}/why?id={BUSY_JOB}",
    "API: preview": f"{API_PATH}/preview",
    "API: deliveries, 500": f"{API_PATH}/deliveries?state=completed&limit=500",
    "API: delivery": f"{API_PATH}/delivery?id=20",
}
BODIES = {"API: preview": {"id": SOME_JOB, "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin"}}
# What an index alone answered counts as read, too. The index by blocks of the history counts blocks, not rows.
ROWS_READ = r"""
select sum(seq_tup_read + greatest(coalesce(idx_tup_fetch, 0), coalesce((
           select sum(idx_tup_read) from pg_stat_user_indexes as indexes
            where indexes.relid = tables.relid and indexrelname not like '%\_at\_idx'), 0)))::bigint
  from pg_stat_user_tables as tables
"""


# So often in a row each is asked for its CPU time, which says more than the milliseconds where other work runs beside.
CALLS = 5


@dataclass(slots=True)
class Asked:
    milliseconds: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    await rig.empty()
    sizes = await add_rows(rig, plan.console_jobs)
    for figure in await measure(rig, plan):
        yield figure
    yield Figure("Database", sizes["bytes"] / 1e9, "GB", note=_in_words(sizes))
    await remove_rows(rig)


async def measure(rig: Rig, plan: Plan) -> list[Figure]:
    """Ask for every page, and make every call, once in each round; and some times more for the CPU time."""
    pages = {name: Asked() for name in PAGES}
    async with rig.database() as database:
        for _ in range(plan.rounds):
            port = free_port()
            with rig.service("console", CONSOLE_HOST=LOOPBACK, CONSOLE_PORT=str(port)) as running:
                # The first connection to Postgres is not part of what is measured.
                await asyncio.to_thread(_ask, port, "/bulk")
                read = await _rows_read(database, plan.seconds)
                for name, path in PAGES.items():
                    before, asked = read, pages[name]
                    asked.milliseconds.append(await asyncio.to_thread(_ask, port, path, _body(name)))
                    read = await _rows_read(database, plan.seconds)
                    asked.rows.append(read - before)
                for name, path in PAGES.items():
                    with running.cost_of(CALLS) as bill:
                        for _ in range(CALLS):
                            await asyncio.to_thread(_ask, port, path, _body(name))
                    pages[name].costs.append(bill.cost)
    return [
        Figure(
            name,
            median(asked.milliseconds),
            "ms",
            goal=WITHIN_200_MS,
            cost=middle(asked.costs),
            note=f"{median(asked.rows):,.0f} rows",
        )
        for name, asked in pages.items()
    ]


def _body(name: str) -> bytes | None:
    return orjson.dumps(BODIES[name]) if name in BODIES else None


async def _rows_read(database: Connection, seconds: float) -> int:
    # Postgres adds up what a connection has read when it has been idle for a second, at the latest.
    await asyncio.sleep(seconds)
    await database.execute("select pg_stat_clear_snapshot()")
    read: int = await database.fetchval(ROWS_READ)
    return read


def _ask(port: int, path: str, body: bytes | None = None) -> float:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=TIMEOUT)
    began = time.perf_counter()
    try:
        headers = {} if body is None else {"Content-Type": "application/json"}
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        answer.read()
    finally:
        connection.close()
    if answer.status != http.HTTPStatus.OK:
        raise RuntimeError(f"{path} was answered with {answer.status}")
    return (time.perf_counter() - began) * 1000


def _in_words(sizes: Mapping[str, int]) -> str:
    return (
        f"{sizes['waiting']:,} schedules wait, {sizes['ended']:,} have ended, {sizes['entries']:,} entries of history"
    )
