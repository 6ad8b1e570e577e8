"""The delivery service's SQL for new deliveries: storing what an event asks for, once."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import astuple

from delivery.due_events import NewDelivery
from shared.database import Connection

# What it returns are two arrays and not as many rows: that is far less to read.
INSERT_NEW = """
with inserted as (
    insert into deliveries (job_id, idempotency_key, topic, sequence, due_at, fired_at, payload, url, host, headers,
                            timeout_seconds, max_retries, secret, traceparent, trigger_id, status, next_attempt_at)
    select n.job_id, n.idempotency_key, n.topic, n.sequence, n.due_at, n.fired_at, n.payload::json, n.url, n.host,
           n.headers::json, n.timeout_seconds, n.max_retries, n.secret, n.traceparent, n.trigger_id,
           case when n.leased then 'PROCESSING' else 'PENDING' end,
           case when n.leased then now() + make_interval(secs => n.timeout_seconds + $17) else now() end
      from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::timestamptz[], $6::timestamptz[], $7::text[],
                  $8::text[], $9::text[], $10::text[], $11::float8[], $12::int[], $13::text[], $14::text[],
                  $15::text[], $16::bool[])
           as n(job_id, idempotency_key, topic, sequence, due_at, fired_at, payload, url, host, headers,
                timeout_seconds, max_retries, secret, traceparent, trigger_id, leased)
     order by n.idempotency_key
    on conflict (idempotency_key) where replay_of is null do nothing
    returning idempotency_key, id
)
select array_agg(idempotency_key) as keys, array_agg(id) as ids, now() as at from inserted
"""


class Inserted(msgspec.Struct, frozen=True):
    ids: dict[str, int]  # of the keys that were not there before
    at: datetime  # when they were created


async def insert_new(
    connection: Connection, deliveries: Sequence[NewDelivery], leased: Sequence[bool], lease_margin: float
) -> Inserted:
    """After the commit every key has its delivery. Returns those that are new. Those of them that are leased are ours
    until the call's own timeout and the margin are over, as if they had been claimed.

    In the order of keys: that is what keeps two replicas with the same events from deadlocking.
    """
    columns = zip(*map(astuple, deliveries), strict=True)  # the statement has them in the order of the fields
    inserted = await connection.fetchrow(INSERT_NEW, *columns, leased, lease_margin)
    if inserted is None:
        raise LookupError("a query without a condition gave no row")
    return Inserted(dict(zip(inserted["keys"] or (), inserted["ids"] or (), strict=True)), inserted["at"])


RELEASE_UNCALLED = """
update deliveries
   set version = version + 1, next_attempt_at = clock_timestamp(), updated_at = now()
 where idempotency_key = any($1::text[]) and replay_of is null and status = 'PROCESSING' and version = 1
returning host
"""


async def release_uncalled(connection: Connection, keys: Iterable[str]) -> list[str]:
    """After the commit: those of them that are still as they were stored, with a lease, are due at once, and anybody's.
    Returns their hosts.
    """
    return [row["host"] for row in await connection.fetch(RELEASE_UNCALLED, list(keys))]
