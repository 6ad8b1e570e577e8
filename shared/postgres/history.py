"""The SQL that writes the history, in the transaction of what an entry tells: both are committed, or neither."""

from collections.abc import Iterable

from shared.contract.history import HistoryEntry, HistoryLevel, is_kept
from shared.postgres.pool import Connection

ADD_ENTRIES = """
insert into history (at, job_id, what, life, revision, sequence, due_at, by_user, app_id, operator, note, details)
select coalesce(e.at, clock_timestamp()), e.job_id, e.what, e.life, e.revision, e.sequence, e.due_at, e.by_user,
       e.app_id, e.operator, e.note, e.details::json
  from unnest($1::timestamptz[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::bigint[], $7::timestamptz[],
              $8::text[], $9::text[], $10::text[], $11::text[], $12::text[])
       as e(at, job_id, what, life, revision, sequence, due_at, by_user, app_id, operator, note, details)
"""


async def add_entries(connection: Connection, entries: Iterable[HistoryEntry], level: HistoryLevel) -> None:
    """After the commit: the entries that the level keeps are in the history."""
    kept = [entry for entry in entries if is_kept(entry.what, level)]
    if not kept:
        return
    await connection.execute(
        ADD_ENTRIES,
        [entry.at for entry in kept],
        [entry.job_id for entry in kept],
        [entry.what for entry in kept],
        [entry.life for entry in kept],
        [entry.revision for entry in kept],
        [entry.sequence for entry in kept],
        [entry.due_at for entry in kept],
        [entry.by_user for entry in kept],
        [entry.app_id for entry in kept],
        [entry.operator for entry in kept],
        [entry.note for entry in kept],
        [entry.details for entry in kept],
    )
