"""Reads the history of all ids by time, without what went as planned: see shared.contract.history.AS_PLANNED. Pages go
back in time from a place, and the cost of a page does not grow with the history.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson

from shared.contract.fields import format_instant, parse_date_time
from shared.contract.history import What
from shared.postgres.pool import Connection
from shared.why.facts import Entry

MAX_HISTORY_ROWS_READ = 20_000


@dataclass(frozen=True, slots=True)
class HistoryWanted:
    """Which entries: all but what went as planned. `search` is any part of an id; `by` is any part of who sent it."""

    search: str | None = None
    by: str | None = None
    what: Sequence[What] = ()
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The entry behind which the next page begins."""

    at: datetime
    job_id: str

    def __str__(self) -> str:
        return f"{format_instant(self.at)}/{self.job_id}"

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Read what `str` wrote. Raises ValueError if the text is no place."""
        at, slash, job_id = text.partition("/")
        if not slash:
            raise ValueError("is not a place in the history")
        return cls(parse_date_time(at), job_id)


@dataclass(frozen=True, slots=True)
class Change:
    """An entry with its id."""

    job_id: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class HistoryPage:
    changes: list[Change]
    next: Place | None


# The index history_changes is walked backwards; its condition is repeated word by word, so that it is used.
CHANGES = """
with walked as materialized (
    select at, job_id, what, life, revision, sequence, due_at, by_user, app_id, operator, note, details::text,
           ($1::text is null or strpos(lower(job_id), lower($1)) > 0)
           and ($2::text is null or strpos(lower(concat_ws(' ', operator, by_user, app_id)), lower($2)) > 0)
           and (cardinality($3::text[]) = 0 or what = any($3)) as fits
      from history
     where what not in ('fired', 'delivered') and at <= coalesce($4::timestamptz, 'infinity')
       and (at, job_id) < (coalesce($4, 'infinity'), coalesce($5::text, ''))
     order by at desc, job_id desc limit $6
)
select last.at as last_at, last.job_id as last_id, last.rows_read, fitting.*
  from (select at, job_id, (select count(*) from walked) as rows_read from walked order by at, job_id limit 1) as last
  left join (select * from walked where fits order by at desc, job_id desc limit $7) as fitting on true
 order by fitting.at desc, fitting.job_id desc
"""


async def list_changes(
    connection: Connection, wanted: HistoryWanted, limit: int, after: Place | None = None
) -> HistoryPage:
    """Return up to `limit` entries, the newest first, behind the place."""
    has_filter = bool(wanted.search or wanted.by or wanted.what)
    rows_to_read = MAX_HISTORY_ROWS_READ if has_filter else limit
    at = after.at if after else wanted.until
    rows = await connection.fetch(
        CHANGES, wanted.search, wanted.by, list(wanted.what), at, after.job_id if after else None, rows_to_read, limit
    )
    if not rows:
        return HistoryPage([], None)
    changes = [_change(dict(row)) for row in rows if row["what"] is not None]
    if len(changes) == limit:
        return HistoryPage(changes, Place(changes[-1].entry.at, changes[-1].job_id))
    if rows[0]["rows_read"] == rows_to_read:
        return HistoryPage(changes, Place(rows[0]["last_at"], rows[0]["last_id"]))
    return HistoryPage(changes, None)


def _change(row: dict[str, object]) -> Change:
    names = ("at", "what", "life", "revision", "sequence", "due_at", "by_user", "app_id", "operator", "note")
    details = orjson.loads(str(row["details"] or "{}"))
    values = {name: row[name] for name in names}
    return Change(str(row["job_id"]), Entry(details=details, **values))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class LatenessAt:
    """How late a sample of one minute's occurrences was published."""

    at: datetime
    sample: int
    p50: timedelta | None
    p99: timedelta | None


# A sample of each minute, by the index history_by_time. What was asked for after its moment counts from then on.
LATENESS_BY_MINUTE = """
select minute as at, count(fired.at) as sample,
       percentile_disc(0.5) within group (order by fired.late) as p50,
       percentile_disc(0.99) within group (order by fired.late) as p99
  from generate_series(date_trunc('minute', now()) - interval '59 minutes', date_trunc('minute', now()), '1 minute')
       as minute
  left join lateral (
      select at, greatest(interval '0', at - greatest(due_at, case when at > due_at + interval '1 second' then (
                 select max(asked.at) from history as asked
                  where asked.job_id = sampled.job_id and asked.at > sampled.due_at and asked.at <= sampled.at
                    and asked.what in ('accepted', 'rescheduled', 'resumed')) end)) as late
        from (select job_id, at, due_at from history
               where at >= minute and at < minute + interval '1 minute' and what = 'fired' limit $1) as sampled
  ) as fired on true
 group by minute order by minute
"""
SAMPLE_OF_A_MINUTE = 100


async def lateness_by_minute(connection: Connection) -> list[LatenessAt]:
    """Return how late occurrences of the last hour were, minute by minute."""
    return [LatenessAt(**dict(row)) for row in await connection.fetch(LATENESS_BY_MINUTE, SAMPLE_OF_A_MINUTE)]
