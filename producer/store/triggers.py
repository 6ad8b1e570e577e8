"""The producer's SQL for the lane of triggers: firings outside the rule that a ScheduleTrigger asked for. The claim
returns each trigger as if it were a one-shot job; only its settling writes to another table.
"""

from collections.abc import Sequence

from producer.decisions.settle import JobUpdate
from producer.store.lanes import Lane
from shared.contract.job_status import JobStatus
from shared.postgres.pool import Connection

# The claim locks the job, too: a cancel waits until the trigger is published. The claim drops triggers of jobs that
# were cancelled before. A trigger of a job that is done meanwhile is fired. If a new life of the id has begun, it is
# fired with the topic, webhook and payload of the new life.
CLAIM_TRIGGERS = """
with due as materialized (
    select t.job_id, t.trigger_id, t.sequence, t.requested_at, t.refusals, t.traceparent, t.life, j.version, j.status,
           j.topic, coalesce(t.payload, j.payload) as payload, j.webhook
      from triggers t join jobs j on j.id = t.job_id
     where t.fired_at is null and t.fire_at <= coalesce($1::timestamptz, now())
     order by t.fire_at limit $2 for no key update skip locked
), dropped as (
    delete from triggers t using due
     where due.status = 'cancelled' and t.job_id = due.job_id and t.trigger_id = due.trigger_id
)
select job_id as id, trigger_id, version, topic, payload, webhook, null as rule, 1 as rule_index, 'all' as misfire,
       0 as misfire_grace_seconds, requested_at as next_run_at, sequence - 1 as sequence, refusals, traceparent,
       life, false as asked_late, now() as now
  from due
 where status <> 'cancelled'
"""

# A claim of triggers that found few, or none, may have left due triggers behind, because the triggers that it dropped
# counted for its limit. So due triggers count here, unlike in other lanes. `skip locked` leaves out triggers that
# another process has claimed: claiming again at once would find them locked again.
NEXT_TRIGGER = """
with left_over as (
    select t.fire_at
      from triggers t join jobs j on j.id = t.job_id
     where t.fired_at is null and t.fire_at <= coalesce($1::timestamptz, now())
     order by t.fire_at limit 1 for no key update skip locked
), coming as (
    select fire_at from triggers
     where fired_at is null and fire_at > coalesce($1::timestamptz, now())
     order by fire_at limit 1
)
select min(fire_at) as at, now() as now
  from (select fire_at from left_over union all select fire_at from coming) as either
having count(*) > 0
"""

SETTLE_TRIGGERS = """
update triggers
   set fired_at = case when s.fired then now() end,
       fire_at = coalesce(clock_timestamp() + s.pause, triggers.fire_at),
       refusals = s.refusals
  from unnest($1::text[], $2::text[], $3::bool[], $4::int[], $5::interval[])
       as s(job_id, trigger_id, fired, refusals, pause)
 where triggers.job_id = s.job_id and triggers.trigger_id = s.trigger_id and triggers.fired_at is null
"""


async def settle_triggers(connection: Connection, updates: Sequence[JobUpdate]) -> None:
    """After the commit: triggers whose events were confirmed are fired, and triggers whose events were refused wait for
    their pause. Their jobs are unchanged.
    """
    if not updates:
        return
    rows = [(s.id, s.trigger_id, s.status is JobStatus.DONE, s.refusals, s.pause) for s in updates]
    await connection.execute(SETTLE_TRIGGERS, *(list(column) for column in zip(*rows, strict=True)))


TRIGGERS = Lane("triggers", CLAIM_TRIGGERS, NEXT_TRIGGER, settle_triggers)
