"""Lists, searches, counts and reads jobs, for the command line and the console. A query walks an index from where the
one before ended, reads MAX_ROWS_A_WALK rows at most, and keeps those that match; a page takes MAX_WALKS queries at
most. So its cost does not grow with the table. A page may be short, or empty: `Page.next` tells whether it is the last.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson

from shared.contract.fields import format_instant, parse_date_time
from shared.postgres.pool import Connection

MAX_PAGE_ROWS = 10_000
MAX_ROWS_A_WALK = 20_000
MAX_WALKS = 10
MAX_COUNT = 10_000
MAX_ROWS_COUNTED = 100_000


class JobState(StrEnum):
    """Which jobs to list. Each has its order, and with it the meaning of a row's `moment`."""

    ALL = "all"  # by id
    PENDING = "pending"  # by the next ring, or the next try of a job that the broker has refused
    REFUSED = "refused"  # pending jobs whose event the broker has refused, by the next try
    PAUSED = "paused"  # by the next run
    DONE = "done"  # the last to end first
    CANCELLED = "cancelled"  # the last to end first


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs. `search` is any part of an id, in upper or lower case; `topic` includes the topics below it; `since`
    and `until` bound the moment by which the state is sorted, for all jobs the end or the next ring.
    """

    state: JobState = JobState.PENDING
    search: str | None = None
    topic: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def has_filter(self) -> bool:
        """Tell whether rows are read that may not match."""
        by_state = self.state in {JobState.REFUSED, JobState.DONE, JobState.CANCELLED}
        by_moment = self.state is JobState.ALL and (self.since is not None or self.until is not None)
        return by_state or by_moment or self.search is not None or self.topic is not None


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place in the order of a state behind which the next page begins. It stays valid while jobs come and go."""

    moment: datetime | None
    id: str

    def __str__(self) -> str:
        return f"{format_instant(self.moment) if self.moment else ''}/{self.id}"

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Read what `str` wrote. Raises ValueError if the text is no cursor."""
        moment, slash, job_id = text.partition("/")
        if not slash or not job_id:
            raise ValueError(f"{text!r} is not a cursor: give the one that the page before printed")
        return cls(parse_date_time(moment) if moment else None, job_id)


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job in a list."""

    id: str
    status: str
    topic: str
    moment: datetime | None
    next_run_at: datetime | None
    retry_at: datetime | None
    refusals: int
    revision: int
    life: int
    sequence: int
    last_due_at: datetime | None
    finished_at: datetime | None
    owner: str | None
    rrule: str | None
    cron: str | None
    every_seconds: int | None
    timezone: str | None  # of the rule
    start_at: str | None  # of the rule
    has_webhook: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Jobs in the order of their state, and where the next page begins. None: this was the last page."""

    jobs: list[ListedJob]
    next: Cursor | None


@dataclass(frozen=True, slots=True)
class Count:
    """How many jobs were counted. `more` says that the count stopped there, and there may be more."""

    jobs: int
    more: bool


# Parameters of each walk: $1 search, $2 topic, $3 since, $4 until, $5 and $6 the cursor, $7 how many rows to read, $8
# the state. A walk yields ids in its order; `fits` tells which of them match.
_MATCHES = """($1::text is null or strpos(lower(id), lower($1)) > 0)
       and ($2::text is null or topic = $2 or starts_with(topic, $2 || '.'))"""

_READY = f"""
select id, next_run_at as moment, {_MATCHES} as fits from jobs
 where status = 'pending' and retry_at is null
   and next_run_at >= greatest($3::timestamptz, $5::timestamptz, '-infinity')
   and next_run_at < coalesce($4::timestamptz, 'infinity')
   and (next_run_at, id) > (coalesce($5, '-infinity'), coalesce($6::text, ''))
 order by next_run_at, id limit $7::int
"""  # noqa: S608 - put together from constants

_WAITING = f"""
select id, retry_at as moment, {_MATCHES} and ($8::text is distinct from 'refused' or refusals > 0) as fits from jobs
 where status = 'pending' and retry_at is not null
   and retry_at >= greatest($3::timestamptz, $5::timestamptz, '-infinity')
   and retry_at < coalesce($4::timestamptz, 'infinity')
   and (retry_at, id) > (coalesce($5, '-infinity'), coalesce($6::text, ''))
 order by retry_at, id limit $7::int
"""  # noqa: S608

_PENDING = f"select * from (({_READY}) union all ({_WAITING})) as pending order by moment, id limit $7::int"  # noqa: S608

# No index has paused jobs in the order of their next run: all of them are read.
_PAUSED = f"""
select id, next_run_at as moment, {_MATCHES} and $8::text is not null as fits from jobs
 where status = 'paused' and finished_at is null
   and next_run_at >= greatest($3::timestamptz, $5::timestamptz, '-infinity')
   and next_run_at < coalesce($4::timestamptz, 'infinity')
   and (next_run_at, id) > (coalesce($5, '-infinity'), coalesce($6::text, ''))
 order by next_run_at, id limit $7::int
"""  # noqa: S608

_ENDED = f"""
select id, finished_at as moment, {_MATCHES} and status = $8::text as fits from jobs
 where status <> 'pending'
   and finished_at >= coalesce($3::timestamptz, '-infinity')
   and finished_at < coalesce($4::timestamptz, 'infinity') and finished_at <= coalesce($5::timestamptz, 'infinity')
   and (finished_at, id) < (coalesce($5, 'infinity'), coalesce($6::text, ''))
 order by finished_at desc, id desc limit $7::int
"""  # noqa: S608

_ALL = f"""
select id, null::timestamptz as moment,
       {_MATCHES}
       and ($3::timestamptz is null or coalesce(finished_at, retry_at, next_run_at) >= $3)
       and ($4::timestamptz is null or coalesce(finished_at, retry_at, next_run_at) < $4)
       and $8::text is not null as fits
  from jobs
 where id > coalesce($6::text, '') and $5::timestamptz is null
 order by id limit $7::int
"""  # noqa: S608


_PAGE = """
with walked as materialized (select row_number() over () as place, * from ({walk}) as read)
select last.id as last_id, last.moment as last_moment, last.place as rows_read, job.*
  from (select id, moment, place from walked order by place desc limit 1) as last
  left join (select id, place from walked where fits order by place limit $9::int) as fitting on true
  left join lateral (
      select jobs.id, status, topic, coalesce(finished_at, retry_at, next_run_at) as moment, next_run_at, retry_at,
             refusals, revision, life, sequence, last_due_at, finished_at, owner, rule->>'rrule' as rrule,
             rule->>'cron' as cron, (rule->>'every_seconds')::int as every_seconds,
             rule->>'timezone' as timezone, rule->>'start_at' as start_at,
             webhook->>'url' is not null as has_webhook
        from jobs where jobs.id = fitting.id limit 1) as job on true
 order by fitting.place
"""
_COUNT = "select count(*) as rows_read, count(*) filter (where fits) as jobs from ({walk}) as walked"

_WALKS: Mapping[JobState, str] = {
    JobState.ALL: _ALL,
    JobState.PENDING: _PENDING,
    JobState.REFUSED: _WAITING,
    JobState.PAUSED: _PAUSED,
    JobState.DONE: _ENDED,
    JobState.CANCELLED: _ENDED,
}
LIST_JOBS = {state: _PAGE.format(walk=walk) for state, walk in _WALKS.items()}
COUNT_JOBS = {state: _COUNT.format(walk=walk) for state, walk in _WALKS.items()}


async def list_jobs(connection: Connection, wanted: Wanted, limit: int, after: Cursor | None = None) -> Page:
    """Return up to `limit` jobs, at most MAX_PAGE_ROWS, behind the cursor, or from the start."""
    limit = min(limit, MAX_PAGE_ROWS)
    page = await _walk_once(connection, wanted, limit, after)
    for _ in range(MAX_WALKS - 1):
        if page.next is None or len(page.jobs) == limit:
            break
        more = await _walk_once(connection, wanted, limit - len(page.jobs), page.next)
        page = Page(page.jobs + more.jobs, more.next)
    return page


async def _walk_once(connection: Connection, wanted: Wanted, limit: int, after: Cursor | None) -> Page:
    rows_to_read = max(limit, MAX_ROWS_A_WALK) if wanted.has_filter else limit
    rows = await connection.fetch(
        LIST_JOBS[wanted.state], *_bounds(wanted), *_place(after), rows_to_read, wanted.state, limit
    )
    if not rows:
        return Page([], None)
    jobs = [ListedJob(*(row[name] for name in ListedJob.__slots__)) for row in rows if row["id"] is not None]
    if len(jobs) == limit:
        return Page(jobs, _cursor(wanted.state, jobs[-1].moment, jobs[-1].id))
    if rows[0]["rows_read"] == rows_to_read:
        return Page(jobs, Cursor(rows[0]["last_moment"], rows[0]["last_id"]))
    return Page(jobs, None)


async def count_jobs(connection: Connection, wanted: Wanted) -> Count:
    """Count the jobs that match. The count stops at MAX_COUNT jobs, and when MAX_ROWS_COUNTED rows were read."""
    rows_to_read = MAX_ROWS_COUNTED if wanted.has_filter else MAX_COUNT + 1
    row = await connection.fetchrow(
        COUNT_JOBS[wanted.state], *_bounds(wanted), *_place(None), rows_to_read, wanted.state
    )
    if row is None:
        raise LookupError("a query without a condition gave no row")
    more = row["jobs"] > MAX_COUNT or row["rows_read"] == rows_to_read
    return Count(min(row["jobs"], MAX_COUNT), more)


def _bounds(wanted: Wanted) -> tuple[str | None, str | None, datetime | None, datetime | None]:
    return wanted.search, wanted.topic, wanted.since, wanted.until


def _place(after: Cursor | None) -> tuple[datetime | None, str | None]:
    return (after.moment, after.id) if after else (None, None)


def _cursor(state: JobState, moment: datetime | None, job_id: str) -> Cursor:
    return Cursor(None if state is JobState.ALL else moment, job_id)


@dataclass(frozen=True, slots=True)
class Job:
    """One job whole. `payload` and `rule` are JSON text as stored; of the webhook's headers only the names are there,
    because a value may be a token.
    """

    id: str
    status: str
    topic: str
    owner: str | None
    next_run_at: datetime | None
    retry_at: datetime | None
    refusals: int
    revision: int
    life: int
    version: int
    sequence: int
    last_due_at: datetime | None
    payload: str | None
    webhook: dict[str, Any] | None
    rule: str | None
    rule_index: int
    misfire: str
    misfire_grace_seconds: int
    traceparent: str | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None


READ_JOB = """
select id, status, topic, owner, next_run_at, retry_at, refusals, revision, life, version, sequence, last_due_at,
       payload::text, webhook::text, rule::text, rule_index, misfire, misfire_grace_seconds, traceparent, created_at,
       updated_at, finished_at
  from jobs where id = $1
"""


async def read_job(connection: Connection, job_id: str) -> Job | None:
    """Return the job, or None if there is none of this id."""
    row = await connection.fetchrow(READ_JOB, job_id)
    if row is None:
        return None
    return Job(**{**dict(row), "webhook": _without_header_values(row["webhook"])})


def _without_header_values(webhook: str | None) -> dict[str, Any] | None:
    if webhook is None:
        return None
    shown: dict[str, Any] = orjson.loads(webhook)
    return {**shown, "headers": dict.fromkeys(shown.get("headers") or {}, "…")}
