"""SQL that stores new deliveries."""

from collections.abc import Sequence, Set

from delivery.events import NewDelivery
from shared.postgres.pool import Connection

# It returns one array and not one row for each key: an array takes far less time to read.
#
# A transaction that writes nothing does not wait for a synchronous standby. If all keys are stored, they may be on the
# primary alone: the commit that stored them may have been cancelled while it waited. So such a transaction writes an
# empty message to the log, and its commit waits for the standby, and so for everything before it.
INSERT_NEW = """
with inserted as (
    insert into deliveries (job_id, idempotency_key, topic, sequence, due_at, fired_at, payload, url, host, headers,
                            timeout_seconds, max_retries, secret, traceparent, trigger_id)
    select n.job_id, n.idempotency_key, n.topic, n.sequence, n.due_at, n.fired_at, n.payload::json, n.url, n.host,
           n.headers::json, n.timeout_seconds, n.max_retries, n.secret, n.traceparent, n.trigger_id
      from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::timestamptz[], $6::timestamptz[], $7::text[],
                  $8::text[], $9::text[], $10::text[], $11::float8[], $12::int[], $13::text[], $14::text[],
                  $15::text[])
           as n(job_id, idempotency_key, topic, sequence, due_at, fired_at, payload, url, host, headers,
                timeout_seconds, max_retries, secret, traceparent, trigger_id)
     order by n.idempotency_key
    on conflict (idempotency_key) where replay_of is null do nothing
    returning idempotency_key
)
select array_agg(idempotency_key), case when count(*) = 0 then pg_logical_emit_message(true, 'duebell', '') end
  from inserted
"""


async def insert_new(connection: Connection, deliveries: Sequence[NewDelivery]) -> Set[str]:
    """After the commit: every key has its delivery, on a synchronous standby, too. Returns the keys that had none.

    The rows are inserted in the order of their keys, so that two replicas with the same events do not deadlock.
    """
    keys = await connection.fetchval(
        INSERT_NEW,
        [new.job_id for new in deliveries],
        [new.idempotency_key for new in deliveries],
        [new.topic for new in deliveries],
        [new.sequence for new in deliveries],
        [new.due_at for new in deliveries],
        [new.fired_at for new in deliveries],
        [new.payload for new in deliveries],
        [new.url for new in deliveries],
        [new.host for new in deliveries],
        [new.headers for new in deliveries],
        [new.timeout_seconds for new in deliveries],
        [new.max_retries for new in deliveries],
        [new.secret for new in deliveries],
        [new.traceparent for new in deliveries],
        [new.trigger_id for new in deliveries],
    )
    return frozenset(keys or ())
