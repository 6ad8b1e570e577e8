"""Reads how bulks stand, for the command line and the console."""

from dataclasses import dataclass
from datetime import datetime

import asyncpg

from shared.contract.labels import read_labels
from shared.postgres.pool import Connection

MAX_BULKS = 100


@dataclass(frozen=True, slots=True)
class Bulk:
    """A row of `bulks`. It goes on until it has a `finished_at`."""

    id: str
    action: str
    dry_run: bool
    labels: dict[str, str] | None
    topic: str | None
    id_prefix: str | None
    by_user: str | None
    operator: str | None
    note: str | None
    matched: int
    changed: int
    requested_at: datetime
    finished_at: datetime | None


_COLUMNS = """id, action, dry_run, labels::text, topic, id_prefix, by_user, operator, note, matched, changed,
       requested_at, finished_at"""

READ_BULK = f"select {_COLUMNS} from bulks where id = $1"  # noqa: S608 - put together from constants

LIST_BULKS = f"""
select * from (
    (select {_COLUMNS} from bulks where answered_at is null order by step_at limit $1::int)
    union all
    (select {_COLUMNS} from bulks where answered_at is not null order by answered_at desc limit $1)) as newest
 order by finished_at desc nulls first, requested_at desc limit $1
"""  # noqa: S608


async def read_bulk(connection: Connection, bulk_id: str) -> Bulk | None:
    """Return the bulk, or None if there is none of this id."""
    row = await connection.fetchrow(READ_BULK, bulk_id)
    return None if row is None else _bulk(row)


async def list_bulks(connection: Connection, limit: int) -> list[Bulk]:
    """Return bulks that go on, and those that ended last."""
    return [_bulk(row) for row in await connection.fetch(LIST_BULKS, min(limit, MAX_BULKS))]


def _bulk(row: asyncpg.Record) -> Bulk:
    return Bulk(**{**dict(row), "labels": read_labels(row["labels"])})
