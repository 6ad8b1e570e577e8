"""How a bulk finds its jobs: it walks an index over open jobs from where the step before ended. So a step reads a
limited number of rows, whatever the table holds.

With labels it walks `job_labels` by one of them. Else it goes topic by topic, through one topic and those below it, or
through all, and in each topic from one id to the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from consumer.commands.bulk import MatchingJob, RunningBulk
from shared.contract.job_status import JobStatus
from shared.postgres.pool import Connection

# How many topics without a match one step looks at.
MAX_TOPICS_A_STEP = 100
# In the order of bytes it comes after every text that begins like it, and has the length of an id or a topic.
_LAST = "\U0010ffff" * 201


@dataclass(frozen=True, slots=True)
class Walked:
    """The jobs of a part of the walk that match, in its order. `place` is where the next part begins; `is_last`: there
    is none. `places` has the place behind each job.
    """

    jobs: list[MatchingJob]
    places: list[tuple[str, str]]
    place: tuple[str, str]
    is_last: bool


# $1 when the bulk was accepted, $2 its user, $3 whether that is an operator, $4 labels, $5 the topic.
_FITS = """
created_at <= $1 and ($3 or owner is null or owner = $2) and ($4::jsonb is null or labels @> $4)
and ($5::text is null or topic = $5 or starts_with(topic, $5 || '.')) and status in ('pending', 'paused')
"""

# job_labels is in the order of bytes, and the key of jobs in that of the database.
BY_LABEL = f"""
select labeled.key as id, '' as topic, job.status, {_FITS} as fits
  from (select job_id, job_id collate "default" as key from job_labels
         where label = $6 and job_id > $7 and job_id >= $8 and job_id < $9
         order by job_id limit $10) as labeled
  left join lateral (
       select status, created_at, owner, labels, topic from jobs where jobs.id = labeled.key limit 1) as job on true
 order by labeled.job_id
"""  # noqa: S608 - put together from constants

IN_TOPIC = f"""
select id, topic, status, {_FITS} as fits
  from jobs
 where status in ('pending', 'paused') and topic collate "C" = $6
   and id collate "C" > $7 and id collate "C" >= $8 and id collate "C" < $9
 order by topic collate "C", id collate "C" limit $10
"""  # noqa: S608

NEXT_TOPIC = """
select topic from jobs
 where status in ('pending', 'paused') and topic collate "C" > $1 and topic collate "C" < $2
 order by topic collate "C" limit 1
"""


# A plan that reads all jobs of a topic or a label, and sorts them, would make each step as long as the whole walk. The
# settings end with the transaction, and the statements behind the walk are planned as ever.
PLAN_IN_ORDER = """
select set_config('enable_sort', $1, true), set_config('enable_bitmapscan', $1, true),
       set_config('enable_seqscan', $1, true)
"""


async def walk(connection: Connection, bulk: RunningBulk, limit: int) -> Walked:
    """Read up to `limit` jobs behind the place of the bulk. Call it inside a transaction."""
    await connection.execute(PLAN_IN_ORDER, "off")
    part = await _walk(connection, bulk, limit)
    await connection.execute(PLAN_IN_ORDER, "on")
    return part


async def _walk(connection: Connection, bulk: RunningBulk, limit: int) -> Walked:
    if bulk.walk_label is not None:
        rows = await connection.fetch(BY_LABEL, *_given(bulk, bulk.walk_label, bulk.after_id), limit)
        place = ("", rows[-1]["id"] if rows else bulk.after_id)
        return _walked(rows, place, is_last=len(rows) < limit)
    return await _walk_topics(connection, bulk, limit)


async def _walk_topics(connection: Connection, bulk: RunningBulk, limit: int) -> Walked:
    topic, after_id = bulk.after_topic or bulk.stored.topic or "", bulk.after_id
    rows: list[asyncpg.Record] = []
    for _ in range(MAX_TOPICS_A_STEP):
        rows += await connection.fetch(IN_TOPIC, *_given(bulk, topic, after_id), limit - len(rows))
        if len(rows) == limit:
            return _walked(rows, (topic, rows[-1]["id"]), is_last=False)
        following = await connection.fetchval(NEXT_TOPIC, *_topics_behind(topic, bulk.stored.topic))
        if following is None:
            return _walked(rows, (topic, after_id), is_last=True)
        topic, after_id = following, ""
    return _walked(rows, (topic, after_id), is_last=False)


def _topics_behind(topic: str, selected: str | None) -> tuple[str, str]:
    """Return between which texts the next topic stands."""
    if selected is None:
        return topic, _LAST
    return max(topic, f"{selected}."), f"{selected}.{_LAST}"


def _given(bulk: RunningBulk, along: str, after_id: str) -> tuple[object, ...]:
    stored, prefix = bulk.stored, bulk.stored.id_prefix or ""
    of_all = (stored.requested_at, stored.user, bulk.of_operator, stored.labels, stored.topic)
    return (*of_all, along, after_id, prefix, prefix + _LAST)


def _walked(rows: Sequence[asyncpg.Record], place: tuple[str, str], *, is_last: bool) -> Walked:
    fitting = [row for row in rows if row["fits"]]
    jobs = [MatchingJob(row["id"], JobStatus(row["status"])) for row in fitting]
    return Walked(jobs, [(row["topic"], row["id"]) for row in fitting], place, is_last)


LOCK_FREE = "select id from jobs where id = any($1::text[]) order by id for no key update skip locked"


async def lock_free(connection: Connection, ids: Sequence[str]) -> set[str]:
    """Lock those of the jobs that no other transaction has locked, until the transaction ends, and return them."""
    return {row["id"] for row in await connection.fetch(LOCK_FREE, ids)}
