"""Rows for the benchmark of the console: as many schedules that wait as have ended, some of them with labels, a history
of five entries for each schedule that waits, deliveries, and delayed messages. One schedule has far more deliveries and
entries than the others. Postgres writes them itself, through two connections, and builds the indexes afterwards.
"""

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from bench.filling import PAYLOAD
from bench.indexes import without_indexes
from bench.rig import Rig
from shared.postgres.pool import Connection

DAYS = 10
PAUSED = 20_000
ENTRIES_FOR_EACH_JOB = 5
EXCHANGES = 50
ROWS_A_STATEMENT = 1_000_000
SOME_JOB = "order-000000042-reminder"
# One in ten deliveries, and one in 250 entries of the history.
BUSY_JOB = "order-000000043-reminder"

# One in ten thousand is of a rare topic, or has a rare label. Ids are in no order of the moments.
WAITING = """
insert into jobs (id, status, revision, topic, payload, misfire, misfire_grace_seconds, next_run_at, labels)
select 'order-' || lpad(n::text, 9, '0') || '-reminder', case when n % $6 = 0 then 'paused' else 'pending' end, 1,
       case when n % 10000 = 7 then 'billing.rare' else 'billing.topic-' || n % 50 end, $4::text::json, 'all', 60,
       now() + interval '1 hour' + (n * 7919 % $1) * $5::interval / $1,
       case when n % 10 = 1 then jsonb_build_object('env', 'prod', 'team', case n % 10000 when 11 then 'rare' else
                                                    'team-' || n % 50 end) end
  from generate_series($2::bigint, $3::bigint) as n
"""
LABELS = """
insert into job_labels (label, job_id)
select label, id
  from (select n, 'order-' || lpad(n::text, 9, '0') || '-reminder' as id from generate_series(1, $1::bigint, 10) as n)
       as labeled,
       lateral unnest(array['env=prod', case n % 10000 when 11 then 'team=rare' else 'team=team-' || n % 50 end])
       as label
 order by label collate "C", id collate "C"
"""
ENDED = """
insert into jobs (id, status, revision, topic, payload, misfire, misfire_grace_seconds, sequence, last_due_at,
                  finished_at)
select 'sent-' || lpad(n::text, 9, '0') || '-receipt', case when n % 1000 = 3 then 'cancelled' else 'done' end, 1,
       'billing.topic-' || n % 50, $4::text::json, 'all', 60, 1, now(), now() - (n * 7919 % $1) * $5::interval / $1
  from generate_series($2::bigint, $3::bigint) as n
"""
PARTITION = "create table history_{name} (like history including defaults)"
# Four of five tell what went as planned.
ENTRIES = """
insert into history_{name} (at, job_id, what, life, revision, sequence, due_at, by_user, app_id, operator)
select at, case when n % 250 = 9 then $5 else 'order-' || lpad((n % $2 + 1)::text, 9, '0') || '-reminder' end,
       case n % 5 when 0 then 'accepted' when 1 then 'delivered' else 'fired' end, 1, 1, 1,
       at - interval '4 milliseconds', case when n % 5 = 0 then 'my-app' end, case when n % 5 = 0 then 'shop' end,
       case when n % 5000 = 0 then 'alice' end
  from generate_series(1, $1::bigint) as n,
       lateral (select $3::timestamptz + (n - 1) * $4::interval / $1 as at) as moment
"""
ATTACH = "alter table history attach partition history_{name} for values from ('{begins}') to ('{ends}')"
DELIVERIES = """
insert into deliveries (job_id, idempotency_key, topic, sequence, due_at, fired_at, url, host, headers,
                        timeout_seconds, max_retries, status, next_attempt_at, finished_at, failure_reason)
select case when n % 10 = 3 then $5 else 'sent-' || lpad(n::text, 9, '0') || '-receipt' end, 'key-' || n,
       'billing.topic-' || n % 50, 1, ended, ended,
       'http://' || host || '/hooks', host, '{}', 10, 3, status,
       case when status = 'PENDING' then now() + interval '1 hour' + n * interval '1 millisecond' end,
       case when status <> 'PENDING' then ended end, case when status = 'FAILED' then 'http_503' end
  from generate_series($2::bigint, $3::bigint) as n,
       lateral (select now() - (n * 7919 % $1) * $4::interval / $1 as ended,
                       case when n % 10000 = 7 then 'rare' else 'host-' || n % 40 end || '.example.com' as host,
                       case when n % 20 = 0 then 'FAILED' when n % 50 = 1 then 'PENDING' else 'COMPLETED' end as status)
       as delivery
"""
ATTEMPTS = """
insert into delivery_attempts (delivery_id, number, started_at, duration_seconds, status_code, answer)
select id, 1, fired_at, 0.02, case status when 'FAILED' then 503 else 200 end, 'ok'
  from deliveries where finished_at is not null order by id
"""
DELAY_EXCHANGES = """
insert into delay_exchanges (exchange) select 'bench-console-' || n from generate_series(0, $1 - 1) as n
"""
FORGET_EXCHANGES = "delete from delay_exchanges where exchange like 'bench-console-%'"
DELAYED = """
insert into delayed_messages (exchange, routing_key, header, body, due_at, message_id)
select 'bench-console-' || n % $5::int, 'k', '\\x0000', convert_to($4, 'UTF8'),
       now() + interval '1 hour' + (n * 7919 % $1) * interval '1 second', 'm-' || n
  from generate_series($2::bigint, $3::bigint) as n
"""
DAYS_OF_HISTORY = """
select to_char(day, 'YYYYMMDD') as name, day as begins, day + interval '1 day' as ends,
       least(day + interval '1 day', now()) - day as length
  from (select date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' as begins) as today,
       generate_series(begins - ($1::int - 1) * interval '1 day', begins, interval '1 day') as day
 order by day
"""
SIZES = """
select (select count(*) from jobs where status in ('pending', 'paused')) as waiting,
       (select count(*) from jobs where status in ('done', 'cancelled')) as ended,
       (select count(*) from history) as entries, pg_database_size(current_database()) as bytes
"""


async def add_rows(rig: Rig, jobs: int) -> Mapping[str, int]:
    """Make `jobs` that wait, as many that have ended, and what belongs to them. Return how many there are of what."""
    async with rig.database() as first, rig.database() as second, asyncio.TaskGroup() as tasks:
        for database in (first, second):
            await database.execute("set timezone = 'UTC'")
        tasks.create_task(_add_jobs(first, jobs))
        tasks.create_task(_add_what_happened(second, jobs))
    async with rig.database() as database:
        await database.execute("checkpoint")
        return dict(await database.fetchrow(SIZES) or {})


async def remove_rows(rig: Rig) -> None:
    async with rig.database() as database:
        await database.execute(FORGET_EXCHANGES)
    await rig.empty()


async def _add_jobs(database: Connection, jobs: int) -> None:
    month = timedelta(days=3 * DAYS)
    async with without_indexes(database, "jobs"):
        await database.execute("alter table jobs disable trigger user")
        await _add(database, WAITING, jobs, PAYLOAD, month, max(jobs // PAUSED, 10))
        await _add(database, ENDED, jobs, PAYLOAD, month)
        await database.execute("alter table jobs enable trigger user")
    await database.execute(LABELS, jobs)
    await database.execute("vacuum (analyze) jobs, job_labels")


async def _add_what_happened(database: Connection, jobs: int) -> None:
    for day in await database.fetch(DAYS_OF_HISTORY, DAYS):
        name = day["name"]
        await database.execute(f"drop table if exists history_{name}")
        await database.execute(PARTITION.format(name=name))
        entries = max(jobs * ENTRIES_FOR_EACH_JOB // DAYS, 10)
        await database.execute(ENTRIES.format(name=name), entries, jobs, day["begins"], day["length"], BUSY_JOB)
        await database.execute(ATTACH.format(name=name, begins=day["begins"], ends=day["ends"]))
    await database.execute("truncate deliveries restart identity")
    async with without_indexes(database, "deliveries"):
        await database.execute("alter table deliveries disable trigger user")
        await _add(database, DELIVERIES, max(jobs // 5, 100), timedelta(days=DAYS), BUSY_JOB)
        await database.execute("alter table deliveries enable trigger user")
    await database.execute(ATTEMPTS)
    await database.execute(FORGET_EXCHANGES)
    await database.execute(DELAY_EXCHANGES, EXCHANGES)
    async with without_indexes(database, "delayed_messages"):
        await _add(database, DELAYED, max(jobs // 10, 100), PAYLOAD, EXCHANGES)
    for table in ("history", "deliveries", "delivery_attempts", "delayed_messages", "delay_exchanges"):
        await database.execute(f"vacuum (analyze) {table}")


async def _add(database: Connection, statement: str, rows: int, *given: object) -> None:
    """Run the statement for rows 1 to `rows`, so many at a time that none meets a timeout."""
    for first in range(1, rows + 1, ROWS_A_STATEMENT):
        await database.execute(statement, rows, first, min(first + ROWS_A_STATEMENT - 1, rows), *given)
