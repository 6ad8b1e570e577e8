"""Lists and counts webhook deliveries, whole and host by host. A query walks an index from where the page before ended,
and reads a bounded number of rows.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import asyncpg

from shared.contract.fields import format_instant, parse_date_time
from shared.postgres.pool import Connection

MAX_DELIVERY_ROWS_READ = 20_000
# How many rows the short walk reads for each row of the page.
ROWS_FOR_EACH = 5
MAX_HOSTS = 100


class DeliveryState(StrEnum):
    FAILED = "failed"  # the last to end first
    OPEN = "open"  # the next to be tried first
    COMPLETED = "completed"  # the last to end first


@dataclass(frozen=True, slots=True)
class DeliveriesWanted:
    """Selects deliveries. `topic` includes the topics below it; `reason` is the beginning of a failure's reason."""

    state: DeliveryState = DeliveryState.FAILED
    job_id: str | None = None
    host: str | None = None
    topic: str | None = None
    reason: str | None = None

    @property
    def has_filter(self) -> bool:
        return any((self.job_id, self.host, self.topic, self.reason)) or self.state is not DeliveryState.OPEN


@dataclass(frozen=True, slots=True)
class DeliveryPlace:
    """The delivery behind which the next page begins."""

    moment: datetime
    id: int

    def __str__(self) -> str:
        return f"{format_instant(self.moment)}/{self.id}"

    @classmethod
    def parse(cls, text: str) -> "DeliveryPlace":
        """Read what `str` wrote. Raises ValueError if the text is no place."""
        moment, _, number = text.partition("/")
        if not number.isdecimal() or len(number) > 18:
            raise ValueError("is not a place among deliveries")
        return cls(parse_date_time(moment), int(number))


@dataclass(frozen=True, slots=True)
class ListedDelivery:
    """A delivery in a list. `replayed_as` is the delivery that tries a failed one again."""

    id: int
    job_id: str
    topic: str
    sequence: int
    status: str
    host: str
    retry_count: int
    max_retries: int
    due_at: datetime
    next_attempt_at: datetime | None
    finished_at: datetime | None
    failure_reason: str | None
    replay_of: int | None
    replayed_as: int | None

    @property
    def moment(self) -> datetime:
        return self.finished_at or self.next_attempt_at or self.due_at


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    deliveries: list[ListedDelivery]
    next: DeliveryPlace | None


_FITS = """($1::text is null or job_id = $1) and ($2::text is null or host = $2)
       and ($3::text is null or topic = $3 or starts_with(topic, $3 || '.'))
       and ($4::text is null or starts_with(failure_reason, $4))"""

_OPEN = f"""
select id, next_attempt_at as moment, {_FITS} and $8::text is not null as fits from deliveries
 where finished_at is null and next_attempt_at >= coalesce($5::timestamptz, '-infinity')
   and (next_attempt_at, id) > (coalesce($5, '-infinity'), coalesce($6::bigint, 0))
 order by next_attempt_at, id limit $7
"""  # noqa: S608 - put together from constants
_ENDED = f"""
select id, finished_at as moment, {_FITS} and status = $8::text as fits from deliveries
 where status in ('COMPLETED', 'FAILED') and finished_at <= coalesce($5::timestamptz, 'infinity')
   and (finished_at, id) < (coalesce($5, 'infinity'), coalesce($6::bigint, 0))
 order by finished_at desc, id desc limit $7
"""  # noqa: S608
_FAILED = f"""
select id, finished_at as moment, {_FITS} and $8::text is not null as fits from deliveries
 where status = 'FAILED' and finished_at <= coalesce($5::timestamptz, 'infinity')
   and (finished_at, id) < (coalesce($5, 'infinity'), coalesce($6::bigint, 0))
 order by finished_at desc, id desc limit $7
"""  # noqa: S608
# Within bounds, and not equal: else Postgres may walk the primary key, past the deliveries of all other jobs.
_OF_JOB = f"""
select id, coalesce(finished_at, next_attempt_at) as moment,
       {_FITS} and case $8::text when 'OPEN' then finished_at is null else status = $8::text end as fits
  from deliveries
 where job_id >= $1 and job_id <= $1 and ($5::timestamptz is null or id < $6::bigint)
 order by job_id desc, id desc limit $7
"""  # noqa: S608
_COLUMNS = """d.id, job_id, topic, sequence, status, host, retry_count, max_retries, due_at, next_attempt_at,
             finished_at, failure_reason, replay_of,
             (select r.id from deliveries as r where r.replay_of = d.id) as replayed_as"""
_PAGE = """
with walked as materialized (select row_number() over () as place, * from ({walk}) as read)
select last.id as last_id, last.moment as last_moment, last.place as rows_read, found.*
  from (select id, moment, place from walked order by place desc limit 1) as last
  left join (select id, place from walked where fits order by place limit $9) as fitting on true
  left join lateral (
      select {columns}
        from deliveries as d where d.id = fitting.id limit 1) as found on true
 order by fitting.place
"""


def _page(walk: str) -> str:
    return _PAGE.format(walk=walk, columns=_COLUMNS)


LIST_DELIVERIES = {
    DeliveryState.OPEN: _page(_OPEN),
    DeliveryState.COMPLETED: _page(_ENDED),
    DeliveryState.FAILED: _page(_FAILED),
}
LIST_DELIVERIES_OF_JOB = _page(_OF_JOB)


async def list_deliveries(
    connection: Connection, wanted: DeliveriesWanted, limit: int, after: DeliveryPlace | None = None
) -> DeliveryPage:
    """Return up to `limit` deliveries behind the place, or from the start. Most pages are full after a short walk."""
    page = await _walk_once(connection, wanted, limit, after, min(limit * ROWS_FOR_EACH, MAX_DELIVERY_ROWS_READ))
    if page.next is None or len(page.deliveries) == limit:
        return page
    more = await _walk_once(connection, wanted, limit - len(page.deliveries), page.next, MAX_DELIVERY_ROWS_READ)
    return DeliveryPage(page.deliveries + more.deliveries, more.next)


async def _walk_once(
    connection: Connection, wanted: DeliveriesWanted, limit: int, after: DeliveryPlace | None, max_rows: int
) -> DeliveryPage:
    rows_to_read = max(limit, max_rows) if wanted.has_filter else limit
    statement = LIST_DELIVERIES_OF_JOB if wanted.job_id is not None else LIST_DELIVERIES[wanted.state]
    rows = await connection.fetch(
        statement,
        wanted.job_id,
        wanted.host,
        wanted.topic,
        wanted.reason,
        after.moment if after else None,
        after.id if after else None,
        rows_to_read,
        wanted.state.upper(),
        limit,
    )
    if not rows:
        return DeliveryPage([], None)
    found = [_listed(row) for row in rows if row["id"] is not None]
    if len(found) == limit:
        return DeliveryPage(found, DeliveryPlace(found[-1].moment, found[-1].id))
    if rows[0]["rows_read"] == rows_to_read:
        return DeliveryPage(found, DeliveryPlace(rows[0]["last_moment"], rows[0]["last_id"]))
    return DeliveryPage(found, None)


NEWEST_OF_JOB = f"""
select {_COLUMNS} from deliveries as d where job_id >= $1 and job_id <= $1 order by job_id desc, id desc limit $2
"""  # noqa: S608


async def newest_deliveries(connection: Connection, job_id: str, limit: int) -> list[ListedDelivery]:
    """Return the newest deliveries of the job, whatever became of them."""
    return [_listed(row) for row in await connection.fetch(NEWEST_OF_JOB, job_id, limit)]


def _listed(row: asyncpg.Record) -> ListedDelivery:
    return ListedDelivery(*(row[name] for name in ListedDelivery.__slots__))


@dataclass(frozen=True, slots=True)
class HostNumbers:
    """How one host stands: deliveries that wait, and those that failed within the last day."""

    host: str
    open: int
    failed: int
    oldest_due_at: datetime | None


# The newest failures and the next open deliveries, by host.
COUNT_BY_HOST = """
with open as (
    select host, count(*) as open, min(due_at) as oldest_due_at from (
        select host, due_at from deliveries where finished_at is null and next_attempt_at > '-infinity'
         order by next_attempt_at limit $1) as nearest
     group by host
), failed as (
    select host, count(*) as failed from (
        select host from deliveries where status = 'FAILED' and finished_at > now() - interval '24 hours'
         order by finished_at desc limit $1) as newest
     group by host
)
select host, coalesce(open, 0) as open, coalesce(failed, 0) as failed, oldest_due_at
  from open full join failed using (host) order by failed desc, open desc, host limit $2
"""
MAX_DELIVERIES_COUNTED = 10_000


async def count_by_host(connection: Connection) -> list[HostNumbers]:
    """Return the hosts with open or failed deliveries, of the nearest and the newest MAX_DELIVERIES_COUNTED of each."""
    rows = await connection.fetch(COUNT_BY_HOST, MAX_DELIVERIES_COUNTED, MAX_HOSTS)
    return [HostNumbers(**dict(row)) for row in rows]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of a webhook. `answer` is the beginning of what the receiver said."""

    delivery_id: int
    number: int
    started_at: datetime
    duration_seconds: float
    status_code: int | None
    error: str | None
    answer: str


ATTEMPTS_OF_DELIVERIES = """
select delivery_id, number, started_at, duration_seconds, status_code, error, answer from delivery_attempts
 where delivery_id = any($1::bigint[]) order by delivery_id desc, number desc
"""


async def read_attempts(connection: Connection, delivery_ids: list[int]) -> dict[int, list[Attempt]]:
    """Return the attempts of each delivery, the last one first. A delivery has 21 at most."""
    attempts: dict[int, list[Attempt]] = {delivery_id: [] for delivery_id in delivery_ids}
    for row in await connection.fetch(ATTEMPTS_OF_DELIVERIES, delivery_ids):
        answer = bytes(row["answer"] or b"").decode("utf-8", "replace")
        attempts[row["delivery_id"]].append(Attempt(**{**dict(row), "answer": answer}))
    return attempts


@dataclass(frozen=True, slots=True)
class WebhookLateness:
    """How long the newest deliveries took from their event to the first call, and to their end."""

    sample: int
    called_p50: float | None
    called_p99: float | None
    ended_p50: float | None
    ended_p99: float | None


WEBHOOK_LATENESS = """
select count(*) as sample,
       percentile_disc(0.5) within group (order by called) as called_p50,
       percentile_disc(0.99) within group (order by called) as called_p99,
       percentile_disc(0.5) within group (order by ended) as ended_p50,
       percentile_disc(0.99) within group (order by ended) as ended_p99
  from (select extract(epoch from a.started_at - d.fired_at)::float8 as called,
               extract(epoch from d.finished_at - d.fired_at)::float8 as ended
          from (select id, fired_at, finished_at from deliveries
                 where status in ('COMPLETED', 'FAILED') and finished_at > now() - interval '1 hour'
                 order by finished_at desc limit $1) as d
          join delivery_attempts as a on a.delivery_id = d.id and a.number = 1) as newest
"""
WEBHOOK_SAMPLE = 1000


async def webhook_lateness(connection: Connection) -> WebhookLateness:
    """Return the lateness of the newest deliveries that ended within the last hour."""
    row = await connection.fetchrow(WEBHOOK_LATENESS, WEBHOOK_SAMPLE)
    if row is None:
        raise LookupError("a query without a condition gave no row")
    return WebhookLateness(**dict(row))


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery whole, without its payload and the values of its headers."""

    id: int
    job_id: str
    idempotency_key: str
    replay_of: int | None
    replayed_as: int | None
    topic: str
    sequence: int
    trigger_id: str | None
    status: str
    url: str
    host: str
    timeout_seconds: float
    max_retries: int
    retry_count: int
    secret: str | None
    due_at: datetime
    fired_at: datetime
    next_attempt_at: datetime | None
    failure_reason: str | None
    created_at: datetime
    finished_at: datetime | None


# The query of the address may carry a secret.
READ_DELIVERY = """
select id, job_id, idempotency_key, replay_of,
       (select r.id from deliveries as r where r.replay_of = d.id) as replayed_as, topic, sequence, trigger_id, status,
       split_part(url, '?', 1) as url, host, timeout_seconds, max_retries, retry_count, secret, due_at, fired_at,
       next_attempt_at, failure_reason, created_at, finished_at
  from deliveries as d where id = $1
"""


async def read_delivery(connection: Connection, delivery_id: int) -> Delivery | None:
    """Return the delivery, or None if there is none of this number."""
    row = await connection.fetchrow(READ_DELIVERY, delivery_id)
    return Delivery(**dict(row)) if row else None
