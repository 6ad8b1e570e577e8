"""What a batch of commands comes to, id by id, and what each command is told. Pure.

Commands reach several consumers in any order, so the outcome must not depend on it: a cancel wins over every request,
and among requests the highest revision wins. Folding a batch by id first also gives the SQL one row per id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from consumer.commands import Cancel, Command, Refused
from consumer.schedules import Schedule
from shared.job_states import JobStatus
from shared.messages import Outcome


@dataclass(slots=True)
class Change:
    """What a batch asks of one job: the best request, and whether it is cancelled."""

    id: str
    schedule: Schedule | None = None
    cancelled_by: int | None = None  # position in the batch of the first cancel


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job as it stands after the batch."""

    status: JobStatus
    revision: int
    next_run_at: datetime | None
    applied: bool  # this batch changed it
    created: bool  # this batch made it


@dataclass(frozen=True, slots=True)
class Answer:
    id: str | None
    outcome: Outcome
    next_run_at: datetime | None = None
    errors: tuple[str, ...] = ()
    changed: bool = False  # this very command changed the job
    schedule: Schedule | None = None  # what was accepted
    parked: bool = False


def fold(commands: Sequence[Command]) -> dict[str, Change]:
    changes: dict[str, Change] = {}
    for position, command in enumerate(commands):
        match command:
            case Cancel():
                change = changes.setdefault(command.id, Change(command.id))
                if change.cancelled_by is None:
                    change.cancelled_by = position
            case Schedule():
                change = changes.setdefault(command.id, Change(command.id))
                if change.schedule is None or command.revision > change.schedule.revision:
                    change.schedule = command
            case Refused():
                pass
            case _:
                assert_never(command)
    return changes


def answer_all(commands: Sequence[Command], changes: dict[str, Change], jobs: dict[str, StoredJob]) -> list[Answer]:
    """Told as if the best request had come first among the requests, and the cancels where they came."""
    answers = []
    for position, command in enumerate(commands):
        match command:
            case Refused():
                answers.append(Answer(command.id, Outcome.REJECTED, errors=command.errors, parked=True))
            case Cancel():
                answers.append(_answer_cancel(changes[command.id].cancelled_by == position, command, jobs[command.id]))
            case Schedule():
                answers.append(_answer_request(position, command, changes[command.id], jobs[command.id]))
            case _:
                assert_never(command)
    return answers


def _answer_cancel(is_the_first: bool, cancel: Cancel, job: StoredJob) -> Answer:
    if job.status is JobStatus.CANCELLED:
        return Answer(cancel.id, Outcome.CANCELLED, changed=is_the_first and job.applied)
    return Answer(cancel.id, Outcome.REJECTED, errors=(f"id: the cancel came late, the job is {job.status}",))


def _answer_request(position: int, request: Schedule, change: Change, job: StoredJob) -> Answer:
    came_before_cancel = change.cancelled_by is None or position < change.cancelled_by
    if job.applied and came_before_cancel and change.schedule is request:
        if job.created:
            return Answer(request.id, Outcome.ACCEPTED, request.next_run_at, changed=True, schedule=request)
        if change.cancelled_by is None or request.revision > job.revision:
            return Answer(request.id, Outcome.RESCHEDULED, request.next_run_at, changed=True, schedule=request)
    match job.status:
        case JobStatus.CANCELLED:
            # The cancel overtook its request: nothing is wrong, and nothing will ring.
            return Answer(request.id, Outcome.CANCELLED)
        case JobStatus.DONE if request.revision > job.revision:
            # Nothing leaves a terminal state, but nothing is lost either: the request is kept for a person to see.
            late = f"revision: {request.revision} came late, the job is done; schedule it under another id"
            return Answer(request.id, Outcome.REJECTED, errors=(late,), parked=True)
        case JobStatus.PENDING | JobStatus.DONE:
            return Answer(request.id, Outcome.DUPLICATE, job.next_run_at)
        case _:
            assert_never(job.status)
