"""Rows for the benchmark of the console: as many schedules that wait as have ended, deliveries, and a history of five
entries for each schedule that waits. Postgres writes them itself.
"""

from datetime import timedelta

from bench.filling import PAYLOAD
from bench.indexes import without_indexes
from shared.postgres.pool import Connection

DAYS = 10
PAUSED = 20_000
ENTRIES_FOR_EACH_JOB = 5
SOME_JOB = "order-000000042-reminder"

# One in ten thousand is of a rare topic. Some are due within the next minutes; ids are in no order of the moments.
WAITING = """
insert into jobs (id, status, revision, topic, payload, misfire, misfire_grace_seconds, next_run_at)
select 'order-' || to_char(n, 'FM000000000') || '-reminder', case when n % $4 = 0 then 'paused' else 'pending' end, 1,
       case when n % 10000 = 7 then 'billing.rare' else 'billing.topic-' || n % 50 end, $2::text::json, 'all', 60,
       now() + interval '1 hour' + (n * 7919 % $1) * $3::interval / $1
  from generate_series(1, $1::bigint) as n
"""
ENDED = """
insert into jobs (id, status, revision, topic, payload, misfire, misfire_grace_seconds, sequence, last_due_at,
                  finished_at)
select 'sent-' || to_char(n, 'FM000000000') || '-receipt', case when n % 1000 = 3 then 'cancelled' else 'done' end, 1,
       'billing.topic-' || n % 50, $2::text::json, 'all', 60, 1, now(), now() - (n * 7919 % $1) * $3::interval / $1
  from generate_series(1, $1::bigint) as n
"""
PARTITION = "create table history_{name} (like history including defaults)"
# Four of five tell what went as planned.
ENTRIES = """
insert into history_{name} (at, job_id, what, life, revision, sequence, due_at, by_user, app_id, operator)
select at, 'order-' || to_char(n % $2 + 1, 'FM000000000') || '-reminder',
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
select 'sent-' || to_char(n, 'FM000000000') || '-receipt', 'key-' || n, 'billing.topic-' || n % 50, 1, ended, ended,
       'http://' || host || '/hooks', host, '{}', 10, 3, status,
       case when status = 'PENDING' then now() + interval '1 hour' end,
       case when status <> 'PENDING' then ended end, case when status = 'FAILED' then 'http_503' end
  from generate_series(1, $1::bigint) as n,
       lateral (select now() - (n * 7919 % $1) * $2::interval / $1 as ended,
                       case when n % 10000 = 7 then 'rare' else 'host-' || n % 40 end || '.example.com' as host,
                       case when n % 20 = 0 then 'FAILED' when n % 50 = 1 then 'PENDING' else 'COMPLETED' end as status)
       as delivery
"""
DAYS_OF_HISTORY = """
select to_char(day, 'YYYYMMDD') as name, day as begins, day + interval '1 day' as ends,
       least(day + interval '1 day', now()) - day as length
  from (select date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' as begins) as today,
       generate_series(begins - ($1::int - 1) * interval '1 day', begins, interval '1 day') as day
 order by day
"""


async def add_rows(database: Connection, jobs: int) -> None:
    """Make `jobs` that wait, as many that have ended, and what belongs to them."""
    await database.execute("set timezone = 'UTC'")
    async with without_indexes(database, "jobs"):
        month = timedelta(days=3 * DAYS)
        paused_every = max(jobs // PAUSED, 10)
        await database.execute("alter table jobs disable trigger user")
        await database.execute(WAITING, jobs, PAYLOAD, month, paused_every)
        await database.execute(ENDED, jobs, PAYLOAD, month)
        await database.execute("alter table jobs enable trigger user")
    async with without_indexes(database, "deliveries"):
        await database.execute("alter table deliveries disable trigger user")
        await database.execute(DELIVERIES, max(jobs // 5, 100), timedelta(days=DAYS))
        await database.execute("alter table deliveries enable trigger user")
    days = await database.fetch(DAYS_OF_HISTORY, DAYS)
    for day in days:
        name = day["name"]
        await database.execute(f"drop table if exists history_{name}")
        await database.execute(PARTITION.format(name=name))
        entries = max(jobs * ENTRIES_FOR_EACH_JOB // DAYS, 10)
        await database.execute(ENTRIES.format(name=name), entries, jobs, day["begins"], day["length"])
        await database.execute(ATTACH.format(name=name, begins=day["begins"], ends=day["ends"]))
    await database.execute("vacuum (analyze) jobs, deliveries, history")
    await database.execute("checkpoint")
