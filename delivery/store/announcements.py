"""SQL for `delivery_announcements`: the outcome events that are still to be published.

`coalesce($n, now())`: production passes null, so Postgres' clock decides what is due; tests pass an instant.
"""

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
    """An ended delivery whose outcome event is still to be published."""

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
    """Lock announcements that are due, the oldest first. Other transactions skip the rows until this one ends."""
    rows = await connection.fetch(CLAIM_ANNOUNCEMENTS, now, limit)
    return [Announcement(**{**row, "status": DeliveryStatus(row["status"])}) for row in rows]


DELETE_ANNOUNCED = "delete from delivery_announcements where delivery_id = any($1::bigint[])"
POSTPONE_REFUSED = """
update delivery_announcements a
   set refusals = a.refusals + 1, announce_at = clock_timestamp() + p.pause
  from unnest($1::bigint[], $2::interval[]) as p(delivery_id, pause)
 where a.delivery_id = p.delivery_id
"""


async def record_announced(connection: Connection, confirmed: Sequence[int], refused: Mapping[int, timedelta]) -> None:
    """After the commit: the rows of confirmed events are deleted, and the rows of refused events are due after their
    pause. Both arguments hold ids of deliveries.
    """
    if confirmed:
        await connection.execute(DELETE_ANNOUNCED, list(confirmed))
    if refused:
        await connection.execute(POSTPONE_REFUSED, list(refused.keys()), list(refused.values()))
