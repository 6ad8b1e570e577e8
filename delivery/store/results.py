"""SQL that records how attempts ended."""

from collections.abc import Sequence

from delivery.model import DeliveryStatus, DeliveryUpdate
from shared.contract.history import HistoryLevel, What, is_kept
from shared.postgres.pool import Connection

# Of which ends each level of the history tells.
_ENDS = {DeliveryStatus.COMPLETED: What.DELIVERED, DeliveryStatus.FAILED: What.DELIVERY_FAILED}
_TOLD = {level: [status for status, what in _ENDS.items() if is_kept(what, level)] for level in HistoryLevel}

# The guard on version: a process that lost its lease finds no row, and neither its attempt nor its outcome is written.
RECORD = """
with outcome as (
    select * from unnest($1::bigint[], $2::bigint[], $3::text[], $4::int[], $5::interval[], $6::text[],
                         $7::timestamptz[], $8::float8[], $9::int[], $10::text[], $11::bytea[])
        as o(id, version, status, retry_count, pause, reason, started_at, duration_seconds, status_code, error, answer)
), recorded as (
    update deliveries d
       set status = o.status,
           version = d.version + 1,
           retry_count = o.retry_count,
           next_attempt_at = clock_timestamp() + o.pause,
           failure_reason = case when o.status = 'FAILED' then o.reason end,
           finished_at = case when o.status in ('COMPLETED', 'FAILED') then now() end,
           updated_at = now()
      from outcome o
     where d.id = o.id and d.version = o.version and d.status = 'PROCESSING'
    returning d.id, d.status, o.version, o.retry_count, o.started_at, o.duration_seconds, o.status_code, o.error,
              o.answer, d.job_id, d.sequence, d.due_at, d.trigger_id, d.host, o.reason
), attempt as (
    insert into delivery_attempts (delivery_id, number, started_at, duration_seconds, status_code, error, answer)
    select id, retry_count + case when status = 'PROCESSING' then 0 else 1 end, started_at, duration_seconds,
           status_code, error, answer
      from recorded where started_at is not null
), announcement as (
    insert into delivery_announcements (delivery_id) select id from recorded where status in ('COMPLETED', 'FAILED')
), told as (
    insert into history (job_id, what, sequence, due_at, details)
    select job_id, case status when 'COMPLETED' then 'delivered' else 'delivery_failed' end, sequence, due_at,
           json_strip_nulls(json_build_object(
               'delivery', id, 'host', host, 'status_code', status_code, 'reason', reason, 'trigger_id', trigger_id,
               'attempts', retry_count + case when started_at is null then 0 else 1 end))
      from recorded where status = any($12::text[])
)
select array_agg(id) as ids, array_agg(version) as versions from recorded
"""


async def record(
    connection: Connection, updates: Sequence[DeliveryUpdate], level: HistoryLevel = HistoryLevel.ALL
) -> set[tuple[int, int]]:
    """After the commit: the deliveries whose lease was still held have their attempt and their new status, and each
    that ended has a row in `delivery_announcements` and, if the level keeps it, in `history`. Returns the ids and
    versions of these deliveries.
    """
    rows = [
        (
            r.delivery.id,
            r.delivery.version,
            r.status,
            r.retry_count,
            r.pause,
            r.reason,
            r.attempt.started_at if r.attempt else None,
            r.attempt.duration.total_seconds() if r.attempt else None,
            r.attempt.status_code if r.attempt else None,
            r.attempt.error if r.attempt else None,
            r.attempt.answer if r.attempt else None,
        )
        for r in updates
    ]
    columns = (list(column) for column in zip(*rows, strict=True))
    held = await connection.fetchrow(RECORD, *columns, _TOLD[level])
    return set(zip(held["ids"], held["versions"], strict=True)) if held and held["ids"] else set()
