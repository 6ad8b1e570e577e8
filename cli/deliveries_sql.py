"""The queries by which the command line reads deliveries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.postgres.pool import Connection

# The URL's query may carry a secret: it is not in lists. The reason of an open delivery is that of its last attempt.
_WITH_LAST_ATTEMPT = """
select d.id, job_id, topic, sequence, status, host, coalesce(a.number, 0) as attempts, due_at, next_attempt_at,
       finished_at, case when finished_at is null then coalesce(a.error, 'http_' || a.status_code) else failure_reason
       end as failure_reason, replay_of, idempotency_key
  from ({deliveries}) as d
  left join lateral (
      select number, error, status_code from delivery_attempts
       where delivery_id = d.id order by number desc limit 1) as a on true
 order by {order}
"""
_FILTER = """($1::text is null or job_id = $1)
   and ($2::text is null or topic = $2 or starts_with(topic, $2 || '.'))"""

LIST_OPEN = _WITH_LAST_ATTEMPT.format(
    deliveries=f"""select * from deliveries
 where finished_at is null and {_FILTER}
   and ($3::timestamptz is null or next_attempt_at >= $3) and ($4::timestamptz is null or next_attempt_at < $4)
 order by next_attempt_at limit $5""",  # noqa: S608 - put together from constants
    order="next_attempt_at",
)

LIST_ENDED_DELIVERIES = _WITH_LAST_ATTEMPT.format(
    deliveries=f"""select * from deliveries
 where status in ('COMPLETED', 'FAILED') and status = $6 and {_FILTER}
   and ($3::timestamptz is null or finished_at >= $3) and ($4::timestamptz is null or finished_at < $4)
 order by finished_at desc limit $5""",  # noqa: S608
    order="finished_at desc",
)

OF_JOB = _WITH_LAST_ATTEMPT.format(
    deliveries="select * from deliveries where job_id >= $1 and job_id <= $1 order by job_id desc, id desc limit $2",
    order="d.id desc",
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which deliveries to list. `since` and `until` bound the next attempt, or the end of those that ended."""

    state: str  # open, completed, failed
    job_id: str | None
    topic: str | None
    since: datetime | None
    until: datetime | None
    limit: int


async def list_deliveries(connection: Connection, wanted: Wanted) -> list[dict[str, Any]]:
    bounds = (wanted.job_id, wanted.topic, wanted.since, wanted.until, wanted.limit)
    if wanted.state == "open":
        rows = await connection.fetch(LIST_OPEN, *bounds)
    else:
        rows = await connection.fetch(LIST_ENDED_DELIVERIES, *bounds, wanted.state.upper())
    return [dict(row) for row in rows]


async def deliveries_of_job(connection: Connection, job_id: str, limit: int) -> list[dict[str, Any]]:
    """Return deliveries of the job, the newest first, each with its attempts."""
    deliveries = [dict(row) for row in await connection.fetch(OF_JOB, job_id, limit)]
    attempts = await attempts_of(connection, [one["id"] for one in deliveries])
    return [{**one, "attempts": attempts[one["id"]]} for one in deliveries]


READ = """
select id, job_id, idempotency_key, replay_of, topic, sequence, status, url, host, timeout_seconds, max_retries, secret,
       retry_count, due_at, fired_at, next_attempt_at, failure_reason, created_at, finished_at, payload::text,
       (select id from deliveries r where r.replay_of = d.id) as replayed_as
  from deliveries d where id = $1
"""


async def read_delivery(connection: Connection, delivery_id: int) -> dict[str, Any] | None:
    row = await connection.fetchrow(READ, delivery_id)
    return dict(row) if row else None


ATTEMPTS = """
select delivery_id, number, started_at, duration_seconds, status_code, error, answer
  from delivery_attempts where delivery_id = any($1::bigint[]) order by delivery_id, number
"""


async def attempts_of(connection: Connection, delivery_ids: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    attempts: dict[int, list[dict[str, Any]]] = {delivery_id: [] for delivery_id in delivery_ids}
    for row in await connection.fetch(ATTEMPTS, list(delivery_ids)):
        answer = bytes(row["answer"] or b"").decode("utf-8", "replace")
        attempts[row["delivery_id"]].append({**dict(row), "answer": answer})
    return attempts
