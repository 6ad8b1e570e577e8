"""The producer's lanes: which due rows each of them claims, and when more of them come due.

`coalesce($1, now())`: null, and Postgres' clock decides what is due; or a moment that is about to come (see
producer.firing). Inside a transaction now() stands still. `look_ahead` is given the same moment as the claim of its
transaction was: with another one, a row between the two moments would be neither claimed nor waited for.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from producer.decisions.plan import Claim, DueJob
from producer.decisions.settle import JobUpdate
from shared.contract.messages import Misfire
from shared.postgres.pool import Connection
from shared.recurrence import Occurrence

# The claims are meant to walk an index and stop at their limit, and nothing else. Left to itself the planner may think,
# by statistics that were true an hour ago, that reading everything that is due and sorting it is cheaper.
PRODUCER_PLANNER_SETTINGS = {"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off"}

# An occurrence this young is never kept waiting by older ones: it has a lane of its own.
DUE_NOW_SECONDS = 30

# Settling needs a lock on the table that a claim alone does not take, and CREATE INDEX, say, has a lock that lets the
# one pass and not the other: then events would be published, and published again, for as long as it lasts. So a claim
# asks for both at once.
_CLAIMED = """
with table_lock as (update jobs set version = version where false)
select id, version, topic, payload, webhook, rule, rule_index, misfire, misfire_grace_seconds, next_run_at, sequence,
       refusals, traceparent, null as trigger_id, now() as now
  from jobs
 where status = 'pending'"""

CLAIM_DUE_NOW = f"""{_CLAIMED}
   and retry_at is null
   and next_run_at > coalesce($1::timestamptz, now()) - interval '{DUE_NOW_SECONDS} seconds'
   and next_run_at <= coalesce($1::timestamptz, now())
 order by next_run_at limit $2 for no key update skip locked
"""

CLAIM_OVERDUE = f"""{_CLAIMED}
   and retry_at is null
   and next_run_at <= coalesce($1::timestamptz, now()) - interval '{DUE_NOW_SECONDS} seconds'
 order by next_run_at limit $2 for no key update skip locked
"""

CLAIM_RETRY = f"""{_CLAIMED}
   and retry_at is not null
   and retry_at <= coalesce($1::timestamptz, now())
 order by retry_at limit $2 for no key update skip locked
"""

NEXT_DUE_JOB = """
select next_run_at as at, now() as now from jobs
 where status = 'pending' and retry_at is null and next_run_at > coalesce($1::timestamptz, now())
 order by next_run_at limit 1
"""

NEXT_RETRY = """
select retry_at as at, now() as now from jobs
 where status = 'pending' and retry_at is not null and retry_at > coalesce($1::timestamptz, now())
 order by retry_at limit 1
"""


SETTLE = """
update jobs
   set status = s.status,
       next_run_at = s.next_run_at,
       rule_index = coalesce(s.rule_index, jobs.rule_index),
       sequence = s.sequence,
       last_due_at = coalesce(s.last_due_at, jobs.last_due_at),
       refusals = s.refusals,
       retry_at = clock_timestamp() + s.pause,
       finished_at = case when s.status = 'done' then now() end,
       updated_at = now(),
       version = jobs.version + 1
  from unnest($1::text[], $2::bigint[], $3::text[], $4::timestamptz[], $5::bigint[], $6::bigint[], $7::timestamptz[],
              $8::int[], $9::interval[])
       as s(id, version, status, next_run_at, rule_index, sequence, last_due_at, refusals, pause)
 where jobs.id = s.id and jobs.version = s.version and jobs.status = 'pending'
"""


# What most rows come to: a one-shot that rang. Postgres knows the rest: two arrays instead of nine.
FINISH = """
update jobs
   set status = 'done',
       next_run_at = null,
       sequence = jobs.sequence + 1,
       last_due_at = jobs.next_run_at,
       refusals = 0,
       retry_at = null,
       finished_at = now(),
       updated_at = now(),
       version = jobs.version + 1
  from unnest($1::text[], $2::bigint[]) as s(id, version)
 where jobs.id = s.id and jobs.version = s.version and jobs.status = 'pending'
"""


async def settle_jobs(connection: Connection, updates: Sequence[JobUpdate]) -> None:
    """After the commit: confirmed occurrences are behind, each row stands at its next one, or is done."""
    finished = [s for s in updates if s.rang_its_only]
    if finished:
        await connection.execute(FINISH, [s.id for s in finished], [s.version for s in finished])
    if len(finished) == len(updates):
        return
    rows = [
        (
            s.id,
            s.version,
            s.status,
            s.next.at if s.next else None,
            s.next.index if s.next else None,
            s.sequence,
            s.last_due_at,
            s.refusals,
            s.pause,
        )
        for s in updates
        if not s.rang_its_only
    ]
    await connection.execute(SETTLE, *(list(column) for column in zip(*rows, strict=True)))


@dataclass(frozen=True, slots=True)
class Lane:
    """A share of the due rows with a claim of its own, so that no lane waits for another."""

    name: str
    claim_sql: str
    look_ahead_sql: str | None  # None: nothing of it comes due by itself
    settle: Callable[[Connection, Sequence[JobUpdate]], Awaitable[None]]
    patient: bool = False  # it stands aside for those that are not: see producer.priority


DUE_NOW = Lane("due_now", CLAIM_DUE_NOW, NEXT_DUE_JOB, settle_jobs)
# Rows become overdue by having been due before: there is no moment to look forward to.
OVERDUE = Lane("overdue", CLAIM_OVERDUE, None, settle_jobs, patient=True)
# Rows with a retry_at: those whose event was refused or whose rule cannot be read wait for another try, rules that used
# up their turn wait for the next. The one that has waited for longest comes first. (Their index is called jobs_refused,
# as the first of them were; only those with refusals are counted as refused.)
RETRY = Lane("retry", CLAIM_RETRY, NEXT_RETRY, settle_jobs, patient=True)


# Looked up, not made: there are as many as there are jobs, and few of a kind.
_MISFIRES = {misfire.value: misfire for misfire in Misfire}


@lru_cache(maxsize=256)
def _seconds(seconds: int) -> timedelta:
    return timedelta(seconds=seconds)


async def claim_due(connection: Connection, lane: Lane, limit: int, moment: datetime | None = None) -> Claim | None:
    """Due rows of one lane, locked until the transaction ends; other claims skip them. None if there are none."""
    rows = await connection.fetch(lane.claim_sql, moment, limit)
    if not rows:
        return None
    now = rows[0]["now"]
    return Claim(
        now,
        moment or now,
        [
            DueJob(
                id=row["id"],
                version=row["version"],
                topic=row["topic"],
                payload=row["payload"],
                webhook=row["webhook"],
                rule=row["rule"],
                occurrence=Occurrence(row["next_run_at"], row["rule_index"]),
                misfire=_MISFIRES[row["misfire"]],
                misfire_grace=_seconds(row["misfire_grace_seconds"]),
                sequence=row["sequence"],
                refusals=row["refusals"],
                traceparent=row["traceparent"],
                trigger_id=row["trigger_id"],
            )
            for row in rows
        ],
    )


@dataclass(frozen=True, slots=True)
class Upcoming:
    at: datetime
    in_seconds: float  # from the beginning of the transaction


async def look_ahead(connection: Connection, lane: Lane, moment: datetime | None = None) -> Upcoming | None:
    """The lane's next due moment, by Postgres' clock, so that a process whose own clock is off still wakes on time.
    What is due already was claimed in this transaction or is locked by another one, and not worth waking for; but for
    triggers: see NEXT_TRIGGER.
    """
    rows = await connection.fetch(lane.look_ahead_sql, moment) if lane.look_ahead_sql else []
    return Upcoming(rows[0]["at"], (rows[0]["at"] - rows[0]["now"]).total_seconds()) if rows else None
