"""The producer's SQL for its lanes: each claims due rows, settles them, and looks ahead to when more rows come due.

`$1` of a claim or a look ahead is the cut-off for "due". Null means `now()`, which stands still inside a transaction. A
timestamp means a claim that is made a little ahead of its moment (see producer.firing). Call `look_ahead` in the
claim's transaction with the same cut-off: with another one, a row between the two would be neither claimed nor waited
for.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from producer.decisions.claim import Claim
from producer.decisions.plan import DueJob
from producer.decisions.settle import JobUpdate
from shared.contract.messages import Misfire
from shared.postgres.pool import Connection
from shared.recurrence import Occurrence

# Settings for the producer's sessions. A claim must walk an index and stop at its limit. Without these settings, and
# with statistics that are an hour old, the planner may find it cheaper to read and sort all due rows.
PRODUCER_PLANNER_SETTINGS = {"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off"}

# An occurrence that is late by less than this has a lane of its own, so that it never waits for older ones.
DUE_NOW_SECONDS = 30

# Settling needs a table lock that a claim alone does not take. CREATE INDEX, for example, holds a lock that lets the
# claim pass and not the settling: events would be published again and again until the index is built. So a claim takes
# both locks at once.
_CLAIMED = """
with table_lock as (update jobs set version = version where false)
select id, version, topic, payload, webhook, rule, rule_index, misfire, misfire_grace_seconds, next_run_at, sequence,
       refusals, traceparent, null as trigger_id, life, rule is null and updated_at > next_run_at as asked_late,
       now() as now
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

# The transaction of a claim ahead of its moment begins before it: now() would end a job before it was due.
SETTLE = """
update jobs
   set status = s.status,
       next_run_at = s.next_run_at,
       rule_index = coalesce(s.rule_index, jobs.rule_index),
       sequence = s.sequence,
       last_due_at = coalesce(s.last_due_at, jobs.last_due_at),
       refusals = s.refusals,
       retry_at = clock_timestamp() + s.pause,
       finished_at = case when s.status = 'done' then greatest(clock_timestamp(), s.last_due_at) end,
       updated_at = now(),
       version = jobs.version + 1
  from unnest($1::text[], $2::bigint[], $3::text[], $4::timestamptz[], $5::bigint[], $6::bigint[], $7::timestamptz[],
              $8::int[], $9::interval[])
       as s(id, version, status, next_run_at, rule_index, sequence, last_due_at, refusals, pause)
 where jobs.id = s.id and jobs.version = s.version and jobs.status = 'pending'
"""


# The state that most rows end in: a one-shot that was fired. The row itself has the other values, so two arrays are
# enough instead of nine.
FINISH = """
update jobs
   set status = 'done',
       next_run_at = null,
       sequence = jobs.sequence + 1,
       last_due_at = jobs.next_run_at,
       refusals = 0,
       retry_at = null,
       finished_at = greatest(clock_timestamp(), jobs.next_run_at),
       updated_at = now(),
       version = jobs.version + 1
  from unnest($1::text[], $2::bigint[]) as s(id, version)
 where jobs.id = s.id and jobs.version = s.version and jobs.status = 'pending'
"""


async def settle_jobs(connection: Connection, updates: Sequence[JobUpdate]) -> None:
    """After the commit: each row is past its confirmed occurrences, and waits for its next one or is done."""
    finished = [s for s in updates if s.fired_only_occurrence]
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
        if not s.fired_only_occurrence
    ]
    await connection.execute(SETTLE, *(list(column) for column in zip(*rows, strict=True)))


@dataclass(frozen=True, slots=True)
class Lane:
    """A share of the due rows with claims of its own, so that no lane waits for another."""

    name: str
    claim_sql: str
    look_ahead_sql: str | None  # None: no row of the lane comes due by itself
    settle: Callable[[Connection, Sequence[JobUpdate]], Awaitable[None]]
    yields_to_due_now: bool = False  # its claims wait while other lanes publish: see producer.priority


DUE_NOW = Lane("due_now", CLAIM_DUE_NOW, NEXT_DUE_JOB, settle_jobs)
# A row is in the lane due_now before it is overdue, so there is no moment to look ahead to.
OVERDUE = Lane("overdue", CLAIM_OVERDUE, None, settle_jobs, yields_to_due_now=True)
# Rows with a retry_at. A job whose event was refused, or whose rule cannot be read, waits for another try; a rule that
# has ended its turn waits for the next one. The row that has waited for longest comes first. The index of the lane is
# called jobs_refused, but only rows with refusals > 0 count as refused.
RETRY = Lane("retry", CLAIM_RETRY, NEXT_RETRY, settle_jobs, yields_to_due_now=True)


# Values that many jobs share are looked up: making one for each job takes longer.
_MISFIRES = {misfire.value: misfire for misfire in Misfire}


@lru_cache(maxsize=256)
def _seconds(seconds: int) -> timedelta:
    return timedelta(seconds=seconds)


async def claim_due(
    connection: Connection, lane: Lane, limit: int, moment: datetime | None = None
) -> Claim[DueJob] | None:
    """Claim due rows of one lane. They are locked until the transaction ends, and other claims skip them. None: no row
    is due, or other transactions have locked all that are.
    """
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
                life=row["life"],
                asked_late=row["asked_late"],
            )
            for row in rows
        ],
        len(rows),
    )


@dataclass(frozen=True, slots=True)
class Upcoming:
    """When the next row of a lane comes due."""

    at: datetime
    in_seconds: float  # after the beginning of the transaction


async def look_ahead(connection: Connection, lane: Lane, moment: datetime | None = None) -> Upcoming | None:
    """Find the lane's next due moment, by Postgres' clock, so that a process whose own clock is wrong still wakes on
    time. Rows that are due already do not count: this transaction or another one has claimed them. NEXT_TRIGGER is the
    exception, and says why.
    """
    rows = await connection.fetch(lane.look_ahead_sql, moment) if lane.look_ahead_sql else []
    return Upcoming(rows[0]["at"], (rows[0]["at"] - rows[0]["now"]).total_seconds()) if rows else None
