"""Lists, searches, counts and reads jobs, for the command line and the console. A query walks an index from where the
one before ended, reads MAX_ROWS_A_WALK rows at most, and keeps those that match; a page takes a short walk, and
MAX_WALKS others at most. So its cost does not grow with the table. A page may be short, or empty: `Page.next` tells
whether it is the last. Open jobs with a label are walked by that label, in the order of their ids; those of a topic
with MAX_ROWS_OF_TOPIC open jobs at most are read by that topic.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import asyncpg
import orjson

from shared.contract.fields import format_instant, parse_date_time
from shared.contract.labels import read_labels, write_labels
from shared.postgres.labels import choose_label
from shared.postgres.pool import Connection
from shared.reading.job_walks import (
    COUNT_JOBS,
    COUNT_LABELED,
    COUNT_OF_TOPIC,
    COUNT_TOPIC,
    FIND_BY_BEGINNING,
    LIST_JOBS,
    LIST_LABELED,
    LIST_OF_TOPIC,
)

MAX_PAGE_ROWS = 10_000
MAX_ROWS_A_WALK = 20_000
MAX_WALKS = 10
# How many rows the short walk reads for each row of the page.
ROWS_FOR_EACH = 5
MAX_COUNT = 10_000
MAX_ROWS_COUNTED = 100_000
MAX_ROWS_OF_TOPIC = 10_000
ROWS_AT_BEGINNING = 500


class JobState(StrEnum):
    """The states by which jobs are listed. Each has its order, and with it the meaning of a row's `moment`."""

    ALL = "all"  # by id
    PENDING = "pending"  # by the next ring, or the next try of a job that the broker has refused
    REFUSED = "refused"  # pending jobs whose event the broker has refused, by the next try
    PAUSED = "paused"  # by the next run
    DONE = "done"  # the last to end first
    CANCELLED = "cancelled"  # the last to end first


@dataclass(frozen=True, slots=True)
class Wanted:
    """Selects jobs. `search` is any part of an id, in upper or lower case; `topic` includes the topics below it;
    `since` and `until` bound the moment by which the state is sorted, for all jobs the end or the next ring; `owner` is
    the AMQP user to whom they belong.
    """

    state: JobState = JobState.PENDING
    search: str | None = None
    topic: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)  # all of them
    owner: str | None = None

    @property
    def has_filter(self) -> bool:
        """Tell whether rows are read that may not match."""
        by_state = self.state in {JobState.REFUSED, JobState.DONE}
        by_moment = self.state is JobState.ALL and (self.since is not None or self.until is not None)
        texts = (self.search, self.topic, self.owner)
        return by_state or by_moment or any(text is not None for text in texts) or bool(self.labels)

    @property
    def is_open(self) -> bool:
        """Tell whether only jobs match that wait for something: an index has them by label, and by topic."""
        return self.state in {JobState.PENDING, JobState.REFUSED, JobState.PAUSED}

    @property
    def is_by_label(self) -> bool:
        """Tell whether the jobs are walked by a label: only those that are open can be."""
        return bool(self.labels) and self.is_open


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
    labels: dict[str, str] | None


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


@dataclass(frozen=True, slots=True)
class Walk:
    """The statements by which the wanted jobs are listed and counted, and their last parameters."""

    listing: str
    counting: str
    further: tuple[str, ...] = ()


async def list_jobs(
    connection: Connection, wanted: Wanted, limit: int, after: Cursor | None = None, walks: int | None = None
) -> Page:
    """Return up to `limit` jobs behind the cursor, or from the start: by a short walk, after which most pages are full,
    and by MAX_WALKS walks unless `walks` says fewer.
    """
    limit = min(limit, MAX_PAGE_ROWS)
    walk = await _choose_walk(connection, wanted)
    page = await _walk_once(connection, walk, wanted, limit, after, min(limit * ROWS_FOR_EACH, MAX_ROWS_A_WALK))
    for _ in range(walks or MAX_WALKS):
        if page.next is None or len(page.jobs) == limit:
            break
        more = await _walk_once(connection, walk, wanted, limit - len(page.jobs), page.next, MAX_ROWS_A_WALK)
        page = Page(page.jobs + more.jobs, more.next)
    return page


async def _choose_walk(connection: Connection, wanted: Wanted) -> Walk:
    if wanted.is_by_label:
        return Walk(LIST_LABELED, COUNT_LABELED, (await choose_label(connection, wanted.labels),))
    if wanted.topic is not None and wanted.is_open:
        jobs = await connection.fetchval(COUNT_TOPIC, wanted.topic, MAX_ROWS_OF_TOPIC + 1)
        if jobs <= MAX_ROWS_OF_TOPIC:
            return Walk(LIST_OF_TOPIC, COUNT_OF_TOPIC)
    return Walk(LIST_JOBS[wanted.state], COUNT_JOBS[wanted.state])


async def _walk_once(  # noqa: PLR0913, PLR0917 - what it walks, and how far
    connection: Connection, walk: Walk, wanted: Wanted, limit: int, after: Cursor | None, max_rows: int
) -> Page:
    rows_to_read = max(limit, max_rows) if wanted.has_filter else limit
    given = (*_bounds(wanted), *_place(after), rows_to_read, wanted.state, _labels(wanted), wanted.owner)
    rows = await connection.fetch(walk.listing, *given, *walk.further, limit)
    if not rows:
        return Page([], None)
    jobs = [_listed(row) for row in rows if row["id"] is not None]
    if len(jobs) == limit:
        return Page(jobs, _cursor(wanted, jobs[-1].moment, jobs[-1].id))
    if rows[0]["rows_read"] == rows_to_read:
        return Page(jobs, Cursor(rows[0]["last_moment"], rows[0]["last_id"]))
    return Page(jobs, None)


async def find_by_beginning(connection: Connection, text: str, limit: int) -> list[ListedJob]:
    """Return jobs of any state whose id begins with the text, by id, at a cost that does not grow with the table."""
    return [_listed(row) for row in await connection.fetch(FIND_BY_BEGINNING, text, ROWS_AT_BEGINNING, limit)]


async def count_jobs(connection: Connection, wanted: Wanted, max_rows: int | None = None) -> Count:
    """Count the jobs that match, to MAX_COUNT, of `max_rows` rows, or of MAX_ROWS_COUNTED if that is None."""
    rows_to_read = (max_rows or MAX_ROWS_COUNTED) if wanted.has_filter else MAX_COUNT + 1
    walk = await _choose_walk(connection, wanted)
    given = (*_bounds(wanted), *_place(None), rows_to_read, wanted.state, _labels(wanted), wanted.owner)
    row = await connection.fetchrow(walk.counting, *given, *walk.further)
    if row is None:
        raise LookupError("a query without a condition gave no row")
    more = row["jobs"] > MAX_COUNT or row["rows_read"] == rows_to_read
    return Count(min(row["jobs"], MAX_COUNT), more)


def _bounds(wanted: Wanted) -> tuple[str | None, str | None, datetime | None, datetime | None]:
    return wanted.search, wanted.topic, wanted.since, wanted.until


def _place(after: Cursor | None) -> tuple[datetime | None, str | None]:
    return (after.moment, after.id) if after else (None, None)


def _cursor(wanted: Wanted, moment: datetime | None, job_id: str) -> Cursor:
    return Cursor(None if wanted.state is JobState.ALL or wanted.is_by_label else moment, job_id)


def _labels(wanted: Wanted) -> str | None:
    return write_labels(wanted.labels) if wanted.labels else None


def _listed(row: asyncpg.Record) -> ListedJob:
    values = {name: row[name] for name in ListedJob.__slots__}
    return ListedJob(**{**values, "labels": read_labels(row["labels"])})


@dataclass(frozen=True, slots=True)
class Job:
    """One job whole. `payload` and `rule` are JSON text as stored; of the webhook's headers only the names are there,
    because a value may be a token.
    """

    id: str
    status: str
    topic: str
    owner: str | None
    labels: dict[str, str] | None
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
select id, status, topic, owner, labels::text, next_run_at, retry_at, refusals, revision, life, version, sequence,
       last_due_at, payload::text, webhook::text, rule::text, rule_index, misfire, misfire_grace_seconds, traceparent,
       created_at, updated_at, finished_at
  from jobs where id = $1
"""


async def read_job(connection: Connection, job_id: str) -> Job | None:
    """Return the job, or None if there is none of this id."""
    row = await connection.fetchrow(READ_JOB, job_id)
    if row is None:
        return None
    return Job(**{**dict(row), "webhook": _without_header_values(row["webhook"]), "labels": read_labels(row["labels"])})


def _without_header_values(webhook: str | None) -> dict[str, Any] | None:
    if webhook is None:
        return None
    shown: dict[str, Any] = orjson.loads(webhook)
    return {**shown, "headers": dict.fromkeys(shown.get("headers") or {}, "…")}
