"""SQL for outcome events that are still to be published."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from delivery.model import DeliveryStatus
from shared.postgres.pool import Connection

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
