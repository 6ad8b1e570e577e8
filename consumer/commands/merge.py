"""What a batch of requests and cancels comes to, id by id, and what each command is told. Pure.

Commands reach several consumers in any order, so the outcome must not depend on it: a cancel wins over every request,
and among requests the highest revision wins. Folding a batch by id first also gives the SQL one row per id. Here all
commands for one id are one user's: consumer.commands.steps sees to it.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import assert_never

import msgspec

from consumer.commands.parse import Cancel
from consumer.commands.schedule import Schedule
from shared.contract.job_status import JobStatus
from shared.contract.messages import Outcome

# Whose it is, is nobody else's business.
NOT_YOURS = "user_id: the job belongs to another user"
USER_IS_REQUIRED = "user_id: is required here"


def may_command(user: str | None, owner: str | None, operators: Collection[str]) -> bool:
    """A job without an owner obeys everybody; another its owner and the operators."""
    return owner is None or user == owner or user in operators


class Change(msgspec.Struct):
    """What a batch asks of one job, on behalf of one user: the best request, and whether it is cancelled."""

    id: str
    user: str | None = None
    schedule: Schedule | None = None
    cancelled_by: int | None = None  # position in the batch of the first cancel


class StoredJob(msgspec.Struct, frozen=True):
    """A job as it stands after the batch."""

    status: JobStatus
    revision: int
    next_run_at: datetime | None
    applied: bool  # this batch changed it
    created: bool  # this batch made it
    owner: str | None = None
    due_soon: bool = False  # producers are to be told


class Answer(msgspec.Struct, frozen=True):
    id: str | None
    outcome: Outcome
    next_run_at: datetime | None = None
    errors: tuple[str, ...] = ()
    changed: bool = False  # this very command changed the job
    schedule: Schedule | None = None  # what was accepted
    parked: bool = False


def fold(commands: Sequence[Schedule | Cancel]) -> dict[str, Change]:
    changes: dict[str, Change] = {}
    for position, command in enumerate(commands):
        change = changes.setdefault(command.id, Change(command.id, command.user))
        match command:
            case Cancel():
                if change.cancelled_by is None:
                    change.cancelled_by = position
            case Schedule():
                if change.schedule is None or command.revision > change.schedule.revision:
                    change.schedule = command
            case _:
                assert_never(command)
    return changes


def answer_all(
    commands: Sequence[Schedule | Cancel],
    changes: dict[str, Change],
    jobs: dict[str, StoredJob],
    operators: Collection[str] = (),
) -> list[Answer]:
    """Told as if the best request had come first among the requests, and the cancels where they came."""
    answers = []
    for position, command in enumerate(commands):
        job = jobs[command.id]
        if not may_command(command.user, job.owner, operators):
            answers.append(refuse(command.id, NOT_YOURS))
            continue
        match command:
            case Cancel():
                answers.append(_answer_cancel(changes[command.id].cancelled_by == position, command, job))
            case Schedule():
                answers.append(_answer_request(position, command, changes[command.id], job))
            case _:
                assert_never(command)
    return answers


def refuse(job_id: str | None, *errors: str) -> Answer:
    """Nothing is lost: what is refused is put aside for a person to see."""
    return Answer(job_id, Outcome.REJECTED, errors=errors, parked=True)


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
            # Nothing leaves a terminal state, but nothing is lost either.
            late = f"revision: {request.revision} came late, the job is done; schedule it under another id"
            return refuse(request.id, late)
        case JobStatus.PENDING | JobStatus.PAUSED | JobStatus.DONE:
            return Answer(request.id, Outcome.DUPLICATE, job.next_run_at)
        case _:
            assert_never(job.status)
