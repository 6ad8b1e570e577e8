"""How fast one consumer pauses all jobs with a label, and how late rings are meanwhile. Beside it: Postgres alone,
which pauses as many by one statement; and the same rings while nothing else happens.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import datetime

import aio_pika

from bench.figures import Beside, Figure, Goal
from bench.filling import PAYLOAD, TOPIC
from bench.plan import Plan
from bench.rig import NAMES, Rig
from bench.waiting import until
from shared.contract.messages import BULK_TYPE
from shared.contract.names import BULK_KEY
from shared.postgres.pool import Connection

# A step's work is about as much as its rest. Where Postgres alone does 25,000 jobs/s, 100,000 take 27 s at most.
MIN_OF_POSTGRES_ALONE = 0.15
MAX_TIMES_AS_LATE = 2.0
SECONDS_BETWEEN_RINGS = 0.02

LABELED = """
insert into jobs (id, status, revision, topic, payload, misfire, misfire_grace_seconds, next_run_at, labels)
select $1 || to_char(n, 'FM00000000'), 'pending', 1, $2, $3::text::json, 'all', 60, now() + interval '1 day',
       '{"team": "bench", "env": "test"}'
  from generate_series(1, $4) as n
"""
RINGS = """
insert into jobs (id, status, revision, topic, payload, misfire, misfire_grace_seconds, next_run_at)
select $1 || n, 'pending', 1, $2, $3::text::json, 'all', 60, clock_timestamp() + n * make_interval(secs => $5)
  from generate_series(1, $4) as n
"""
LATE = """
select 1000 * percentile_cont(0.99) within group (order by extract(epoch from at - due_at)), count(*)
  from history
 where what = 'fired' and job_id like 'ring-%' and due_at between $1 and $2
"""
PAUSE_ALONE = """
with paused as (
    update jobs set status = 'paused', version = version + 1, updated_at = now()
     where id in (select job_id collate "default" from job_labels where label = 'team=bench') and status = 'pending'
    returning id)
insert into history (job_id, what) select id, 'paused' from paused
"""


async def run(rig: Rig, plan: Plan) -> AsyncIterator[Figure]:
    await rig.empty()
    async with rig.database() as database:
        await _add_labeled(database, plan.bulk_jobs, "alone-")
        began = await database.fetchval("select clock_timestamp()")
        await database.execute(PAUSE_ALONE)
        took = await database.fetchval("select clock_timestamp()") - began
        alone = Beside("Postgres alone, one statement", plan.bulk_jobs / took.total_seconds())
    await rig.empty()
    async with rig.database() as database:
        await _add_labeled(database, plan.bulk_jobs, "labeled-")
        with rig.service("producer"), rig.service("consumer") as consumer:
            idle, _ = await _late(database, *await _ring_alone(database, plan))
            await _add_rings(database, plan.bulk_seconds, "ring-beside-")
            with consumer.cost_of(plan.bulk_jobs) as bill:
                requested_at, finished_at, changed = await _pause_all(rig, database)
            late, rings = await _late(database, requested_at, finished_at)
    seconds = (finished_at - requested_at).total_seconds()
    goal = Goal(at_least=MIN_OF_POSTGRES_ALONE)
    yield Figure(f"{changed:,} jobs paused by their label", changed / seconds, "jobs/s", alone, goal, bill.cost)
    beside = Beside("the same rings alone", idle)
    yield Figure("rings meanwhile, late, p99", late, "ms", beside, Goal(at_most=MAX_TIMES_AS_LATE),
                 note=f"of {rings} rings")  # fmt: skip


async def _add_labeled(database: Connection, count: int, name: str) -> None:
    await database.execute(LABELED, name, TOPIC, PAYLOAD, count)
    await database.execute("vacuum (analyze) jobs, job_labels")
    await database.execute("checkpoint")


async def _add_rings(database: Connection, seconds: float, name: str) -> None:
    count = int(seconds / SECONDS_BETWEEN_RINGS)
    await database.execute(RINGS, name, "ring", PAYLOAD, count, SECONDS_BETWEEN_RINGS)


async def _ring_alone(database: Connection, plan: Plan) -> tuple[datetime, datetime]:
    began: datetime = await database.fetchval("select clock_timestamp()")
    await _add_rings(database, plan.bulk_seconds / 4, "ring-alone-")
    await asyncio.sleep(plan.bulk_seconds / 4 + 1)
    ended: datetime = await database.fetchval("select clock_timestamp()")
    return began, ended


async def _late(database: Connection, since: datetime, until_: datetime) -> tuple[float, int]:
    row = await database.fetchrow(LATE, since, until_)
    return (float(row[0] or 0), int(row[1])) if row else (0.0, 0)


async def _pause_all(rig: Rig, database: Connection) -> tuple[datetime, datetime, int]:
    content = {"id": "bench", "action": "pause", "selector": {"labels": {"team": "bench"}}}
    async with rig.channel() as channel:
        exchange = await channel.get_exchange(NAMES.commands, ensure=False)
        await exchange.publish(aio_pika.Message(json.dumps(content).encode(), type=BULK_TYPE), BULK_KEY)

    async def finished() -> bool:
        return bool(await database.fetchval("select true from bulks where finished_at is not null"))

    await until(finished, "the end of the bulk")
    row = await database.fetchrow("select requested_at, finished_at, changed from bulks")
    if row is None:
        raise LookupError("the bulk is gone")
    return row["requested_at"], row["finished_at"], row["changed"]
