"""SQL that finds failed deliveries and replays them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.postgres.pool import Connection

SELECT_FAILED = """
select id, job_id, idempotency_key, topic, due_at, finished_at, retry_count + 1 as attempts, failure_reason, host
  from deliveries d
 where status = 'FAILED'
   and ($1::bigint[] is null or id = any($1))
   and ($2::text[] is null or job_id = any($2))
   and ($3::timestamptz is null or finished_at >= $3)
   and ($4::timestamptz is null or finished_at < $4)
   and ($5::text is null or failure_reason like $5)
   and not exists (select from deliveries r where r.replay_of = d.id)
 order by finished_at, id limit $6
"""


@dataclass(frozen=True, slots=True)
class ReplayFilter:
    """Selects failed deliveries. A field that is None has no effect."""

    delivery_ids: Sequence[int] | None = None
    job_ids: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    reason: str | None = None  # * stands for anything


@dataclass(frozen=True, slots=True)
class FailedDelivery:
    """A failed delivery, as `duebell deliveries replay` shows it."""

    id: int
    job_id: str
    idempotency_key: str
    topic: str
    due_at: datetime
    finished_at: datetime
    attempts: int
    failure_reason: str
    host: str


async def select_failed(connection: Connection, wanted: ReplayFilter, limit: int) -> list[FailedDelivery]:
    """Find failed deliveries that have no replay yet, the oldest failure first."""
    rows = await connection.fetch(
        SELECT_FAILED,
        wanted.delivery_ids,
        wanted.job_ids,
        wanted.since,
        wanted.until,
        _pattern(wanted.reason) if wanted.reason else None,
        limit,
    )
    return [FailedDelivery(**row) for row in rows]


def _pattern(reason: str) -> str:
    escaped = reason.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%")


REPLAY = """
with replayed as (
    insert into deliveries (job_id, idempotency_key, replay_of, topic, sequence, due_at, fired_at, payload, url, host,
                            headers, timeout_seconds, max_retries, secret, traceparent, trigger_id)
    select job_id, idempotency_key, id, topic, sequence, due_at, fired_at, payload, url, host, headers, timeout_seconds,
           max_retries, secret, traceparent, trigger_id
      from deliveries
     where id = any($1::bigint[]) and status = 'FAILED'
     order by id
    on conflict (replay_of) where replay_of is not null do nothing
    returning replay_of, id, job_id, sequence, due_at
), told as (
    insert into history (job_id, what, sequence, due_at, by_user, operator, details)
    select job_id, 'replayed', sequence, due_at, coalesce($3, session_user), $2,
           json_build_object('delivery', id, 'replay_of', replay_of)
      from replayed
)
select replay_of, id from replayed
"""


async def replay(
    connection: Connection, delivery_ids: Sequence[int], operator: str | None = None, by_user: str | None = None
) -> dict[int, int]:
    """After the commit: each of the deliveries has a replay, which is a new delivery with the same key, and an entry in
    the history, by the user of the database unless `by_user` names one. Returns the id of the replay for each delivery
    that had none before this call.
    """
    rows = await connection.fetch(REPLAY, list(delivery_ids), operator, by_user)
    return {row["replay_of"]: row["id"] for row in rows}
