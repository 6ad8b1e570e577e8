"""How the commands of a batch are grouped, merged and answered. Pure.

A batch is cut into steps that are stored one after the other. The commands of one step do not depend on each other; a
command whose outcome depends on an earlier one for the same id, because that one is of another kind or of another user,
comes in a later step. So a batch has the same effect as its commands one by one, in order of arrival. A batch of
requests alone is one step with one part.

Within a step, requests and cancels are merged id by id. Commands reach several consumers in any order, so their outcome
must not depend on it: a cancel wins over every request, and among requests the highest revision wins. Merging also
gives the SQL one row per id.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar, assert_never

import msgspec

from consumer.commands.parse import Cancel, Command, Pause, Refused, Resume, Trigger
from consumer.commands.schedule import Schedule
from shared.contract.job_status import JobStatus
from shared.contract.messages import Outcome

# The error does not name the owner: another user has no right to know it.
NOT_THE_OWNER = "user_id: the job belongs to another user"
USER_IS_REQUIRED = "user_id: is required here"

Item = TypeVar("Item")


@dataclass(slots=True)
class Part(Generic[Item]):
    """The commands of a step that one transaction stores, and their positions in the batch."""

    positions: list[int] = field(default_factory=list)
    commands: list[Item] = field(default_factory=list)

    def add(self, position: int, command: Item) -> None:
        self.positions.append(position)
        self.commands.append(command)


@dataclass(slots=True)
class Step:
    """Commands that are stored together. All commands for one id are of one user, and either request and cancel, or
    pause, resume and trigger. A pause and a trigger of one job fit into one step: both need an open job, and leave it
    open.

    Each part is a transaction of its own that locks jobs in the order of their ids. Two parts in one transaction would
    lock them in another order, and could deadlock with another consumer.
    """

    scheduling: Part[Schedule | Cancel] = field(default_factory=Part)
    pausing: Part[Pause | Resume] = field(default_factory=Part)
    triggering: Part[Trigger] = field(default_factory=Part)

    def add(self, position: int, command: Schedule | Cancel | Pause | Resume | Trigger) -> None:
        match command:
            case Schedule() | Cancel():
                self.scheduling.add(position, command)
            case Pause() | Resume():
                self.pausing.add(position, command)
            case Trigger():
                self.triggering.add(position, command)
            case _:
                assert_never(command)


class Change(msgspec.Struct):
    """What a batch asks of one job, on behalf of one user: the request with the highest revision, and a cancel."""

    id: str
    user: str | None = None
    schedule: Schedule | None = None
    cancelled_by: int | None = None  # position of the first cancel among the merged commands


class StoredJob(msgspec.Struct, frozen=True):
    """A job as it stands after the batch."""

    status: JobStatus
    revision: int
    next_run_at: datetime | None
    applied: bool  # this batch changed it
    created: bool  # this batch made it
    owner: str | None = None
    due_soon: bool = False  # the producers must be woken


class Answer(msgspec.Struct, frozen=True):
    """What became of one command: the content of its reply, and whether the command is parked."""

    id: str | None
    outcome: Outcome
    next_run_at: datetime | None = None
    errors: tuple[str, ...] = ()
    changed: bool = False  # this command changed the job
    schedule: Schedule | None = None  # what was accepted
    parked: bool = False


def cut_into_steps(commands: Sequence[Command]) -> list[Step]:
    """Put every command into a step, except those that were refused while they were read."""
    steps: list[Step] = []
    latest: dict[str, tuple[int, bool, str | None]] = {}
    for position, command in enumerate(commands):
        if isinstance(command, Refused):
            continue
        schedules = isinstance(command, Schedule | Cancel)
        number = 0
        if (before := latest.get(command.id)) is not None:
            number = before[0] if before[1:] == (schedules, command.user) else before[0] + 1
        latest[command.id] = number, schedules, command.user
        if number == len(steps):
            steps.append(Step())
        steps[number].add(position, command)
    return steps


def merge_commands(commands: Sequence[Schedule | Cancel]) -> dict[str, Change]:
    """Return one change per id. All commands for one id must be of one user, as they are in a step."""
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


def answer_merged(
    commands: Sequence[Schedule | Cancel],
    changes: dict[str, Change],
    jobs: dict[str, StoredJob],
    operators: Collection[str] = (),
) -> list[Answer]:
    """Return one answer per command. Requests are answered as if the one with the highest revision had come first among
    them, and cancels as if they had been carried out in their place.
    """
    answers = []
    for position, command in enumerate(commands):
        job = jobs[command.id]
        if not may_command(command.user, job.owner, operators):
            answers.append(refuse(command.id, NOT_THE_OWNER))
            continue
        match command:
            case Cancel():
                answers.append(_answer_cancel(changes[command.id].cancelled_by == position, command, job))
            case Schedule():
                answers.append(_answer_request(position, command, changes[command.id], job))
            case _:
                assert_never(command)
    return answers


def may_command(user: str | None, owner: str | None, operators: Collection[str]) -> bool:
    """Every user may command a job without an owner; other jobs only their owner and the operators.

    The SQL statements decide, by the same rule, under the row's lock. `may_command` explains their result in a reply.
    """
    return owner is None or user == owner or user in operators


def refuse(job_id: str | None, *errors: str) -> Answer:
    """Answer that the command is rejected, and have it parked: an operator can read it and send it again."""
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
            # The cancel overtook its request: that is no error, and the job will not fire.
            return Answer(request.id, Outcome.CANCELLED)
        case JobStatus.DONE if request.revision > job.revision:
            # A job does not leave a terminal state. The request is parked, so that it is not lost.
            late = f"revision: {request.revision} came late, the job is done; schedule it under another id"
            return refuse(request.id, late)
        case JobStatus.PENDING | JobStatus.PAUSED | JobStatus.DONE:
            return Answer(request.id, Outcome.DUPLICATE, job.next_run_at)
        case _:
            assert_never(job.status)
