"""How cancels are carried out and answered, one after the other. Pure.

A cancel closes revisions: every one up to its own, or, if it names none, the one that the job has. A request with a
closed revision is a duplicate, whether it came before the cancel or comes after it. So requests and cancels with
revisions end the same in every order: the highest revision wins, and at the same revision the cancel.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec
from msgspec.structs import replace

from consumer.commands.merge import Answer, may_command, refuse
from consumer.commands.parse import Cancel
from shared.contract.job_status import OPEN, JobStatus
from shared.contract.messages import Outcome
from shared.contract.wording import NOT_THE_OWNER

# What a cancel without a revision closes if there is no job: the revision that a request has by default.
FIRST_REVISION = 1


class Mark(msgspec.Struct, frozen=True):
    """A cancelled row for an id without a job. By it a late request learns that its revision is closed."""

    id: str
    revision: int
    owner: str | None


class CancelledJob(msgspec.Struct, frozen=True):
    """A job as it stood when the transaction of the batch had locked its row, or after some of its cancels."""

    status: JobStatus
    revision: int
    owner: str | None = None
    next_run_at: datetime | None = None
    life: int = 1


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The result of a step's cancels: an answer to each, and the new revision of each job that they change."""

    answers: list[Answer] = field(default_factory=list)
    revisions: dict[str, int] = field(default_factory=dict)


def marks_of(cancels: Sequence[Cancel]) -> list[Mark]:
    """Return the mark that the cancels leave for each id, if it has no job. It closes what all of them close."""
    marks: dict[str, Mark] = {}
    for cancel in cancels:
        before = marks.get(cancel.id)
        if before is None:
            marks[cancel.id] = Mark(cancel.id, _closed_without_a_job(cancel), cancel.user)
        elif cancel.revision is not None and cancel.revision > before.revision:
            marks[cancel.id] = Mark(cancel.id, cancel.revision, before.owner)
    return list(marks.values())


def _closed_without_a_job(cancel: Cancel) -> int:
    return FIRST_REVISION if cancel.revision is None else cancel.revision


def cancel_jobs(
    cancels: Sequence[Cancel],
    marked: Collection[str],
    jobs: Mapping[str, CancelledJob],
    operators: Collection[str] = (),
) -> Cancelled:
    """Carry the cancels out, in their order. `marked` are the ids that had no job and have a mark now; `jobs` are those
    of all other ids.
    """
    cancelled, now, met = Cancelled(), dict(jobs), set[str]()
    for cancel in cancels:
        if cancel.id in marked:
            cancelled.answers.append(_answer_marked(cancel, is_first=cancel.id not in met))
            met.add(cancel.id)
            continue
        job = now[cancel.id]
        if not may_command(cancel.user, job.owner, operators):
            cancelled.answers.append(refuse(cancel.id, NOT_THE_OWNER))
            continue
        after = _cancel(cancel, job)
        if after != job:
            now[cancel.id] = after
            cancelled.revisions[cancel.id] = after.revision
        cancelled.answers.append(_answer(cancel, job, after))
    return cancelled


def _cancel(cancel: Cancel, job: CancelledJob) -> CancelledJob:
    is_open = job.status in OPEN
    if is_open and cancel.revision is not None and cancel.revision < job.revision:
        return job
    status = JobStatus.CANCELLED if is_open else job.status
    return replace(job, status=status, revision=max(job.revision, cancel.revision or 0))


def _answer(cancel: Cancel, before: CancelledJob, after: CancelledJob) -> Answer:
    if after.status is JobStatus.CANCELLED:
        return Answer(cancel.id, Outcome.CANCELLED, changed=before.status in OPEN)
    if after.status is JobStatus.DONE:
        return Answer(cancel.id, Outcome.REJECTED, errors=("id: the cancel came late, the job is done",))
    older = f"the job is at revision {before.revision} already; this cancel closes revisions up to {cancel.revision}"
    return Answer(cancel.id, Outcome.DUPLICATE, errors=(f"revision: {older}",))


def _answer_marked(cancel: Cancel, *, is_first: bool) -> Answer:
    if not is_first:
        return Answer(cancel.id, Outcome.CANCELLED)
    closed = _closed_without_a_job(cancel)
    unknown = f"id: there is no such job; a request with a revision higher than {closed} is taken"
    return Answer(cancel.id, Outcome.UNKNOWN, errors=(unknown,), changed=True)
