"""Decides, by the publish results of a claim, the new state of each row and the size of the next claim. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from producer.decisions.plan import DueJob, Plan, PlannedFiring
from shared.amqp.message import PUBLISHED, PublishResult
from shared.contract.job_status import JobStatus
from shared.recurrence import Occurrence
from shared.runtime.backoff import pause_after

# The pause of a rule whose turn is over while more of its occurrences are due: none, but it waits in the retry lane,
# behind the rows that have waited there for longer.
END_OF_TURN = timedelta(0)


class JobUpdate(msgspec.Struct, frozen=True, gc=False):
    """The new state of a row of a job, or of a trigger, as an UPDATE writes it."""

    id: str
    version: int
    status: JobStatus
    next: Occurrence | None
    sequence: int
    last_due_at: datetime | None
    refusals: int
    pause: timedelta | None
    trigger_id: str | None = None
    fired_only_occurrence: bool = False  # a one-shot that is done, as almost all jobs are


def attribute(results: list[PublishResult], jobs: int) -> list[PublishResult]:
    """Return the publish results as they count for the jobs: in a claim of several jobs, CLOSED counts as UNKNOWN.

    When the broker closes a channel over a message, it does not say which message. Only in a claim of one job is it
    known to be that job's.
    """
    if jobs == 1 or PublishResult.CLOSED not in results:
        return results
    return [PublishResult.UNKNOWN if result is PublishResult.CLOSED else result for result in results]


def next_claim_size(rows: int, largest: int, *, channel_closed: bool) -> int:
    """Choose how many rows a Firer claims after a claim of `rows` rows that was published and settled.

    After a closed channel the claims are of one row each, to find the row that closes it. They grow again while all
    goes well.
    """
    return 1 if channel_closed else min(largest, 2 * rows)


def settle_all(firings: Sequence[PlannedFiring], results: Sequence[PublishResult]) -> list[JobUpdate]:
    """Return the updates of a claim's rows. A row that stays as it is has none."""
    updates = (
        postpone_unreadable(firing.job)
        if firing.plan is None
        else settle(firing.job, firing.plan, results[firing.messages])
        for firing in firings
    )
    return [update for update in updates if update is not None]


def settle(job: DueJob, plan: Plan, results: Sequence[PublishResult]) -> JobUpdate | None:
    """Return the row's update. None leaves the row as it is: no event was confirmed, and none was refused.

    Occurrences count in order: the job waits for the first one that was not confirmed, which keeps its due_at. If the
    broker refused it, the job waits for a growing pause in the retry lane. If its publish result is unknown, it is due
    again at once. A rule that has ended its turn waits in the retry lane, behind the rows there: it is the oldest, and
    would always be claimed first.
    """
    if job.rule is None and len(results) == 1 and results[0] in PUBLISHED:
        return JobUpdate(
            id=job.id,
            version=job.version,
            status=JobStatus.DONE,
            next=None,
            sequence=job.sequence + 1,
            last_due_at=job.occurrence.at,
            refusals=0,
            pause=None,
            trigger_id=job.trigger_id,
            fired_only_occurrence=True,
        )
    confirmed = next((i for i, result in enumerate(results) if result not in PUBLISHED), len(results))
    all_confirmed = confirmed == len(results)
    waits_for = plan.next if all_confirmed else plan.publish_now[confirmed]
    refused = not all_confirmed and results[confirmed] is not PublishResult.UNKNOWN
    if confirmed == 0 and not all_confirmed and not refused:
        return None
    refusals = (job.refusals if confirmed == 0 else 0) + 1 if refused else 0
    return JobUpdate(
        id=job.id,
        version=job.version,
        status=JobStatus.PENDING if waits_for else JobStatus.DONE,
        next=waits_for,
        sequence=job.sequence + confirmed,
        last_due_at=plan.publish_now[confirmed - 1].at if confirmed else None,
        refusals=refusals,
        pause=pause_after(refusals) if refused else END_OF_TURN if all_confirmed and plan.next_is_due else None,
        trigger_id=job.trigger_id,
    )


def postpone_unreadable(job: DueJob) -> JobUpdate:
    """Return the update of a job whose rule cannot be read. It keeps its occurrence, and waits for a growing pause in
    the retry lane.
    """
    return JobUpdate(
        id=job.id,
        version=job.version,
        status=JobStatus.PENDING,
        next=job.occurrence,
        sequence=job.sequence,
        last_due_at=None,
        refusals=job.refusals + 1,
        pause=pause_after(job.refusals + 1),
        trigger_id=job.trigger_id,
    )
