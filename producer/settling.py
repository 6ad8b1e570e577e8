"""From the broker's verdicts to the new state of a row. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from producer.planning import DueJob, Plan
from shared.job_states import JobStatus
from shared.outgoing import Verdict
from shared.recurrence import Occurrence

FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(minutes=5)

# A rule that has more to ring than its turn allows: it is due again, behind all others that are.
END_OF_TURN = timedelta(0)

RANG = [Verdict.CONFIRMED]


class Settled(msgspec.Struct, frozen=True, gc=False):
    """What an UPDATE writes."""

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


class Shot(msgspec.Struct, frozen=True, gc=False):
    """One job of a claim, with its place among the claim's messages."""

    job: DueJob
    plan: Plan | None  # None: its rule cannot be read
    messages: slice


def settle_all(shots: Sequence[Shot], verdicts: Sequence[Verdict]) -> list[Settled]:
    settled = (
        put_off(shot.job) if shot.plan is None else settle(shot.job, shot.plan, verdicts[shot.messages])
        for shot in shots
    )
    return [row for row in settled if row is not None]


def settle(job: DueJob, plan: Plan, verdicts: Sequence[Verdict]) -> Settled | None:
    """None leaves the row as it is: nothing was confirmed, and nothing is known against it.

    Occurrences count in order: the first that was not confirmed is where the job stands, and it keeps its due_at. If
    the broker refused it, it waits for a growing pause, out of the others' way; if the answer is unknown, it is simply
    due again. One that rang as often as it may in a turn goes to the end of the line: being the oldest, it would always
    be first.
    """
    if job.rule is None and verdicts == RANG:
        return Settled(
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
    confirmed = next((i for i, verdict in enumerate(verdicts) if verdict is not Verdict.CONFIRMED), len(verdicts))
    all_confirmed = confirmed == len(verdicts)
    standing = plan.then if all_confirmed else plan.ringing[confirmed]
    refused = not all_confirmed and verdicts[confirmed] is not Verdict.UNKNOWN
    if confirmed == 0 and not all_confirmed and not refused:
        return None
    refusals = (job.refusals if confirmed == 0 else 0) + 1 if refused else 0
    return Settled(
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


def put_off(job: DueJob) -> Settled:
    """A row that cannot be fired for a reason of its own: it stays where it is, out of the others' way."""
    return Settled(
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
    return min(LONGEST_PAUSE, FIRST_PAUSE * doubled)
