"""The delivery service's SQL for new deliveries: storing what an event asks for, once."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from delivery.due_events import NewDelivery
from shared.database import Connection

INSERT_NEW = """
insert into deliveries (job_id, idempotency_key, topic, sequence, due_at, fired_at, payload, url, host, headers,
                        timeout_seconds, max_retries, secret, traceparent, trigger_id, status, next_attempt_at)
select n.job_id, n.idempotency_key, n.topic, n.sequence, n.due_at, n.fired_at, n.payload::json, n.url, n.host,
       n.headers::json, n.timeout_seconds, n.max_retries, n.secret, n.traceparent, n.trigger_id,
       case when n.leased then 'PROCESSING' else 'PENDING' end,
       case when n.leased then now() + make_interval(secs => n.timeout_seconds + $17) else now() end
  from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::timestamptz[], $6::timestamptz[], $7::text[],
              $8::text[], $9::text[], $10::text[], $11::float8[], $12::int[], $13::text[], $14::text[], $15::text[],
              $16::bool[])
       as n(job_id, idempotency_key, topic, sequence, due_at, fired_at, payload, url, host, headers, timeout_seconds,
            max_retries, secret, traceparent, trigger_id, leased)
 order by n.idempotency_key
on conflict (idempotency_key) where replay_of is null do nothing
returning idempotency_key, id, created_at
"""


class Inserted(NamedTuple):
    id: int
    at: datetime


async def insert_new(
    connection: Connection, deliveries: Sequence[NewDelivery], leased: Sequence[bool], lease_margin: float
) -> dict[str, Inserted]:
    """After the commit every key has its delivery. Returns the keys that had none before. Those of them that are
    leased are ours until the call's own timeout and the margin are over, as if they had been claimed.

    In the order of keys: that is what keeps two replicas with the same events from deadlocking.
    """
    rows = [
        (
            d.job_id,
            d.idempotency_key,
            d.topic,
            d.sequence,
            d.due_at,
            d.fired_at,
            d.payload,
            d.url,
            d.host,
            d.headers,
            d.timeout_seconds,
            d.max_retries,
            d.secret,
            d.traceparent,
            d.trigger_id,
        )
        for d in deliveries
    ]
    columns = (list(column) for column in zip(*rows, strict=True))
    inserted = await connection.fetch(INSERT_NEW, *columns, leased, lease_margin)
    return {key: Inserted(row_id, at) for key, row_id, at in inserted}
