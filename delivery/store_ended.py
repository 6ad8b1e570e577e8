"""The delivery service's SQL for deliveries that ended: announcing, replaying, deleting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from delivery.states import DeliveryStatus
from shared.database import Connection

CLAIM_ANNOUNCEMENTS = """
select a.delivery_id, a.refusals, d.job_id, d.topic, d.sequence, d.due_at, d.idempotency_key, d.status,
       d.retry_count + 1 as attempts, d.failure_reason, d.traceparent, d.trigger_id
  from delivery_announcements a join deliveries d on d.id = a.delivery_id
 where a.announce_at <= coalesce($1::timestamptz, now())
 order by a.announce_at limit $2 for update of a skip locked
"""


class Announcement(msgspec.Struct, frozen=True, gc=False):
    delivery_id: int
    refusals: int
    job_id: str
    topic: str
    sequence: int
    due_at: datetime
    idempotency_key: str
    status: DeliveryStatus
    attempts: int
    failure_reason: str | None
    traceparent: str | None = None
    trigger_id: str | None = None


async def claim_announcements(connection: Connection, limit: int, now: datetime | None = None) -> list[Announcement]:
    """Locked until the transaction ends, and skipped by everybody else."""
    rows = await connection.fetch(CLAIM_ANNOUNCEMENTS, now, limit)
    return [Announcement(**{**row, "status": DeliveryStatus(row["status"])}) for row in rows]


DELETE_ANNOUNCED = "delete from delivery_announcements where delivery_id = any($1::bigint[])"
PUT_OFF_ANNOUNCEMENTS = """
update delivery_announcements a
   set refusals = a.refusals + 1, announce_at = clock_timestamp() + p.pause
  from unnest($1::bigint[], $2::interval[]) as p(delivery_id, pause)
 where a.delivery_id = p.delivery_id
"""


async def settle_announcements(
    connection: Connection, announced: Sequence[int], put_off: Mapping[int, timedelta]
) -> None:
    """After the commit: what was confirmed is forgotten, what was refused waits for its pause."""
    if announced:
        await connection.execute(DELETE_ANNOUNCED, list(announced))
    if put_off:
        await connection.execute(PUT_OFF_ANNOUNCEMENTS, list(put_off.keys()), list(put_off.values()))


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
class Wanted:
    """Which failed deliveries: what is None does not matter."""

    delivery_ids: Sequence[int] | None = None
    job_ids: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    reason: str | None = None  # * stands for anything


@dataclass(frozen=True, slots=True)
class FailedDelivery:
    id: int
    job_id: str
    idempotency_key: str
    topic: str
    due_at: datetime
    finished_at: datetime
    attempts: int
    failure_reason: str
    host: str


async def select_failed(connection: Connection, wanted: Wanted, limit: int) -> list[FailedDelivery]:
    """Those that were not replayed yet, the oldest failure first."""
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
insert into deliveries (job_id, idempotency_key, replay_of, topic, sequence, due_at, fired_at, payload, url, host,
                        headers, timeout_seconds, max_retries, secret, traceparent, trigger_id)
select job_id, idempotency_key, id, topic, sequence, due_at, fired_at, payload, url, host, headers, timeout_seconds,
       max_retries, secret, traceparent, trigger_id
  from deliveries
 where id = any($1::bigint[]) and status = 'FAILED'
 order by id
on conflict (replay_of) where replay_of is not null do nothing
returning replay_of, id
"""


async def replay(connection: Connection, delivery_ids: Sequence[int]) -> dict[int, int]:
    """After the commit each of them has a new delivery that carries its key. Returns which became which; one that
    somebody else replayed meanwhile is not among them.
    """
    return {row["replay_of"]: row["id"] for row in await connection.fetch(REPLAY, list(delivery_ids))}


DELETE_FINISHED = """
delete from deliveries where id in (
    select id from deliveries d
     where status in ('COMPLETED', 'FAILED') and finished_at < now() - $1::interval
       and not exists (select from delivery_announcements a where a.delivery_id = d.id)
     order by finished_at limit $2 for update skip locked)
"""


async def delete_finished(connection: Connection, older_than: timedelta, limit: int) -> int:
    """How many are gone, with their attempts. Small batches: each is a short transaction."""
    return int((await connection.execute(DELETE_FINISHED, older_than, limit)).split()[-1])
