"""SQL that reads what is known about an id. Each query costs what it returns, however long the tables are."""

from datetime import datetime, timedelta
from typing import Any

import orjson

from shared.contract.delayed import number_in
from shared.contract.job_status import JobStatus
from shared.postgres.pool import Connection
from shared.reading.delayed import find_messages
from shared.reading.overview import read_instances
from shared.why.facts import DelayedMessage, Delivery, Entry, Facts, Job, Process

# The history of a rule that fires every second is as long as its retention. These are the newest entries.
MAX_ENTRIES = 100
MAX_DELIVERIES = 10
MAX_WAITING = 10
INSTANCES_KEPT = timedelta(days=7)

READ_STATE = """
select status, topic, revision, life, sequence, refusals, misfire, next_run_at, retry_at, last_due_at, finished_at,
       coalesce(rule->>'timezone', case when rule is not null then 'UTC' end) as timezone,
       webhook->>'url' as webhook_url, owner
  from jobs where id = $1
"""


async def read_job(connection: Connection, job_id: str) -> Job | None:
    row = await connection.fetchrow(READ_STATE, job_id)
    return Job(**{**dict(row), "status": JobStatus(row["status"])}) if row else None


READ_ENTRIES = """
select at, what, life, revision, sequence, due_at, by_user, app_id, operator, note, details::text
  from history where job_id = $1 order by at desc limit $2
"""


async def read_entries(connection: Connection, job_id: str, limit: int = MAX_ENTRIES) -> list[Entry]:
    """Return what happened to the id, the newest first."""
    return [_entry(dict(row)) for row in await connection.fetch(READ_ENTRIES, job_id, limit)]


def _entry(row: dict[str, Any]) -> Entry:
    return Entry(**{**row, "details": orjson.loads(row["details"] or b"{}")})


# Within bounds, and not equal: else Postgres may walk the primary key, past the deliveries of all other jobs.
READ_LAST_DELIVERIES = """
select d.id, d.sequence, d.due_at, d.trigger_id, d.status, d.host, coalesce(a.number, 0) as attempts,
       d.max_retries + 1 as attempts_allowed, d.next_attempt_at, d.finished_at, d.failure_reason, d.secret,
       a.status_code as last_status_code, a.error as last_error, a.answer as last_answer
  from (select * from deliveries where job_id >= $1 and job_id <= $1 order by job_id desc, id desc limit $2) d
  left join lateral (
      select number, status_code, error, answer from delivery_attempts
       where delivery_id = d.id order by number desc limit 1) a on true
 order by d.id desc
"""


async def read_deliveries(connection: Connection, job_id: str, limit: int = MAX_DELIVERIES) -> list[Delivery]:
    """Return the deliveries of the job, the newest first."""
    return [_delivery(dict(row)) for row in await connection.fetch(READ_LAST_DELIVERIES, job_id, limit)]


def _delivery(row: dict[str, Any]) -> Delivery:
    return Delivery(**{**row, "last_answer": (row["last_answer"] or b"").decode("utf-8", "replace")})


async def read_processes(connection: Connection) -> list[Process]:
    """Return the processes that were seen in the last days."""
    return [
        Process(
            service=one.service, seen_at=one.seen_at, is_running=one.state == "alive", open_breakers=one.open_breakers
        )
        for one in await read_instances(connection, INSTANCES_KEPT)
    ]


DATABASE_TIME = "select now()"


async def read_facts(connection: Connection, job_id: str) -> Facts:
    """Read everything that an explanation needs but the listeners. The clock is that of Postgres."""
    now: datetime = await connection.fetchval(DATABASE_TIME)
    waiting = await find_messages(connection, job_id, MAX_WAITING)
    # The history of one message, asked for by its number, is under its name or its message_id.
    history_id = (waiting[0].name or waiting[0].message_id) if waiting and number_in(job_id) is not None else None
    return Facts(
        job_id=job_id,
        now=now,
        job=await read_job(connection, job_id),
        entries=await read_entries(connection, history_id or job_id),
        deliveries=await read_deliveries(connection, job_id),
        processes=await read_processes(connection),
        delayed=[
            DelayedMessage(
                id=each.id,
                exchange=each.exchange,
                routing_key=each.routing_key,
                due_at=each.due_at,
                retry_at=each.retry_at,
                refusals=each.refusals,
                refused_because=each.refused_because,
            )
            for each in waiting
        ],
    )
