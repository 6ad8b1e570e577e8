"""What the broker's verdicts mean: for the state of each row, and for the size of the next claim. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from producer.decisions.plan import DueJob, Plan, PlannedFiring
from shared.amqp.message import PublishResult
from shared.contract.job_status import JobStatus
from shared.recurrence import Occurrence

FIRST_PAUSE = timedelta(seconds=1)
MAX_RETRY_PAUSE = timedelta(minutes=5)

# A rule that has more to ring than its turn allows: it is due again, behind all others that are.
END_OF_TURN = timedelta(0)

RANG = [PublishResult.CONFIRMED]


class JobUpdate(msgspec.Struct, frozen=True, gc=False):
    """What an UPDATE writes to the row of a job, or of a trigger."""

    id: str
    version: int
    status: JobStatus
    next: Occurrence | None
    sequence: int
    last_due_at: datetime | None
    refusals: int
    pause: timedelta | None
    trigger_id: str | None = None
    rang_its_only: bool = False  # a one-shot that is done: what almost all are


def attribute(verdicts: list[PublishResult], jobs: int) -> list[PublishResult]:
    """The verdicts as far as they can be held against a job: in a claim of several jobs, CLOSED counts as UNKNOWN.

    A channel that the broker closed says that a message is at fault, not which one. Only in a claim of one job it is
    known to be that job's.
    """
    if jobs == 1 or PublishResult.CLOSED not in verdicts:
        return verdicts
    return [PublishResult.UNKNOWN if verdict is PublishResult.CLOSED else verdict for verdict in verdicts]


def next_claim_size(rows: int, largest: int, *, channel_closed: bool) -> int:
    """How many rows a worker claims after a claim of so many rows that was published and settled.

    After a closed channel the claims are of one row each, so that it shows which row closes it. They grow again while
    all goes well.
    """
    return 1 if channel_closed else min(largest, 2 * rows)


def settle_all(firings: Sequence[PlannedFiring], verdicts: Sequence[PublishResult]) -> list[JobUpdate]:
    """The updates of a claim's rows. A row that stays as it is has none."""
    updates = (
        put_off(firing.job) if firing.plan is None else settle(firing.job, firing.plan, verdicts[firing.messages])
        for firing in firings
    )
    return [update for update in updates if update is not None]


def settle(job: DueJob, plan: Plan, verdicts: Sequence[PublishResult]) -> JobUpdate | None:
    """The row's update; None leaves it as it is: nothing was confirmed, and nothing is known against it.

    Occurrences count in order: the first that was not confirmed is where the job stands, and it keeps its due_at. If
    the broker refused it, it waits for a growing pause, out of the others' way; if the answer is unknown, it is simply
    due again. A rule that rang as often as it may in a turn goes behind all others that are due: being the oldest, it
    would always be first.
    """
    if job.rule is None and verdicts == RANG:
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
            rang_its_only=True,
        )
    confirmed = next((i for i, verdict in enumerate(verdicts) if verdict is not PublishResult.CONFIRMED), len(verdicts))
    all_confirmed = confirmed == len(verdicts)
    standing = plan.then if all_confirmed else plan.ringing[confirmed]
    refused = not all_confirmed and verdicts[confirmed] is not PublishResult.UNKNOWN
    if confirmed == 0 and not all_confirmed and not refused:
        return None
    refusals = (job.refusals if confirmed == 0 else 0) + 1 if refused else 0
    return JobUpdate(
        id=job.id,
        version=job.version,
        status=JobStatus.PENDING if standing else JobStatus.DONE,
        next=standing,
        sequence=job.sequence + confirmed,
        last_due_at=plan.ringing[confirmed - 1].at if confirmed else None,
        refusals=refusals,
        pause=pause_after(refusals) if refused else END_OF_TURN if all_confirmed and plan.behind else None,
        trigger_id=job.trigger_id,
    )


def put_off(job: DueJob) -> JobUpdate:
    """The update of a row that cannot be fired for a reason of its own: it keeps its occurrence, and waits for a
    growing pause, out of the others' way.
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


def pause_after(refusals: int) -> timedelta:
    """1, 2, 4 … seconds, five minutes at most."""
    doubled: int = 2 ** min(refusals - 1, 20)
    return min(MAX_RETRY_PAUSE, FIRST_PAUSE * doubled)
