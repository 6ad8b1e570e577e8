"""Reads the history of all ids by time, without what went as planned: see shared.contract.history.AS_PLANNED. Pages go
back in time from a place, and the cost of a page does not grow with the history.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

import orjson

from shared.contract.fields import format_instant, parse_date_time
from shared.contract.history import What
from shared.postgres.pool import Connection
from shared.why.facts import Entry

MAX_HISTORY_ROWS_READ = 20_000
# How many rows the short walk reads for each row of the page.
ROWS_FOR_EACH = 5


@dataclass(frozen=True, slots=True)
class HistoryWanted:
    """Selects entries: all but what went as planned. `search` is any part of an id; `by` is any part of who sent it."""

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
    """Return up to `limit` entries, the newest first, behind the place. Most pages are full after a short walk."""
    page = await _walk_once(connection, wanted, limit, after, min(limit * ROWS_FOR_EACH, MAX_HISTORY_ROWS_READ))
    if page.next is None or len(page.changes) == limit:
        return page
    more = await _walk_once(connection, wanted, limit - len(page.changes), page.next, MAX_HISTORY_ROWS_READ)
    return HistoryPage(page.changes + more.changes, more.next)


async def _walk_once(
    connection: Connection, wanted: HistoryWanted, limit: int, after: Place | None, max_rows: int
) -> HistoryPage:
    rows_to_read = max(limit, max_rows) if wanted.search or wanted.by or wanted.what else limit
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


# Entries are appended, so the pages of a day are in the order of time, and are read by their numbers. An index by
# blocks would not do: it leaves out what has come since vacuum was there last, and each minute would read all of that.
PAGES_OF_DAY = """
select pg_relation_size(to_regclass('history_' || to_char($1::timestamptz at time zone 'UTC', 'YYYYMMDD')))
       / current_setting('block_size')::bigint
"""
FIRST_ENTRIES = """
select (select at from history
         where ctid >= format('(%s,0)', page)::tid and at >= $2::timestamptz and at < $2 + interval '24 hours' limit 1)
  from unnest($1::bigint[]) with ordinality as given (page, place) order by place
"""
# A sample of each minute: what was published among its first entries. What was asked for after its moment counts from
# then on.
LATENESS_BY_MINUTE = """
select minute as at, count(fired.at) as sample,
       percentile_disc(0.5) within group (order by fired.late) as p50,
       percentile_disc(0.99) within group (order by fired.late) as p99
  from unnest($2::timestamptz[], $3::bigint[]) as given (minute, page)
  left join lateral (
      select at, greatest(interval '0', at - greatest(due_at, case when at > due_at + interval '1 second' then (
                 select max(asked.at) from history as asked
                  where asked.job_id = sampled.job_id and asked.at > sampled.due_at and asked.at <= sampled.at
                    and asked.what in ('accepted', 'rescheduled', 'resumed')) end)) as late
        from (select job_id, at, due_at from history
               where ctid >= format('(%s,0)', page)::tid and ctid < format('(%s,0)', page + $4::bigint)::tid
                 and at >= $1::timestamptz and at < $1 + interval '24 hours'
                 and at >= minute and at < minute + interval '1 minute' and what = 'fired' limit $5) as sampled
  ) as fired on true
 group by minute order by minute
"""
THIS_MINUTE = "select date_trunc('minute', now())"
MINUTES = 60
SAMPLE_OF_A_MINUTE = 100
MAX_PAGES_OF_A_MINUTE = 16
# Entries of several sessions may come a little out of order.
PAGES_BEFORE = 2


async def lateness_by_minute(connection: Connection) -> list[LatenessAt]:
    """Return how late occurrences of the last hour were, minute by minute."""
    last: datetime = await connection.fetchval(THIS_MINUTE)
    minutes = [last - timedelta(minutes=ago) for ago in reversed(range(MINUTES))]
    found: list[LatenessAt] = []
    for day, of_day in groupby(minutes, key=lambda at: at.astimezone(UTC).replace(hour=0, minute=0)):
        found += await _lateness_of_day(connection, day, list(of_day))
    return found


async def _lateness_of_day(connection: Connection, day: datetime, minutes: list[datetime]) -> list[LatenessAt]:
    pages: int = await connection.fetchval(PAGES_OF_DAY, day) or 0
    begins = [max(0, page - PAGES_BEFORE) for page in await _find_pages(connection, day, minutes, pages)]
    limits = (MAX_PAGES_OF_A_MINUTE + PAGES_BEFORE, SAMPLE_OF_A_MINUTE)
    rows = await connection.fetch(LATENESS_BY_MINUTE, day, minutes, begins, *limits)
    return [LatenessAt(**dict(row)) for row in rows]


async def _find_pages(connection: Connection, day: datetime, minutes: list[datetime], pages: int) -> list[int]:
    """Return the first page of each minute, by halving the pages of the day until one is left: all minutes at once."""
    low, high = [0] * len(minutes), [pages] * len(minutes)
    for _ in range(pages.bit_length()):
        middle = [(first + last) // 2 for first, last in zip(low, high, strict=True)]
        entries = await connection.fetch(FIRST_ENTRIES, middle, day)
        for number, (minute, (at,)) in enumerate(zip(minutes, entries, strict=True)):
            if low[number] == high[number]:
                continue
            if at is not None and at < minute:
                low[number] = middle[number] + 1
            else:
                high[number] = middle[number]
    return low
