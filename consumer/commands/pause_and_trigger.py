"""What pauses, resumes and triggers are told. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from consumer.commands.merge import NOT_YOURS, Answer, may_command, refuse
from consumer.commands.parse import Pause, Resume, Trigger
from shared.contract.job_status import OPEN, JobStatus
from shared.contract.messages import Outcome

TriggerKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LockedJob:
    """A job as it stood when the batch got hold of it."""

    status: JobStatus
    next_run_at: datetime | None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class StoredTriggers:
    """What became of a batch of triggers."""

    jobs: Mapping[str, LockedJob]
    new: Collection[TriggerKey] = ()
    heeded: Collection[TriggerKey] = ()  # of jobs that are over: those that rang before, or are still to ring


def last_wishes(commands: Sequence[Pause | Resume]) -> dict[str, Pause | Resume]:
    """In order of arrival the last one wins."""
    return {command.id: command for command in commands}


def first_of_each(commands: Sequence[Trigger]) -> dict[TriggerKey, int]:
    """Where each trigger first stands: what comes after it with the same id is a duplicate."""
    first: dict[TriggerKey, int] = {}
    for position, command in enumerate(commands):
        first.setdefault((command.id, command.trigger_id), position)
    return first


def answer_steering(
    commands: Sequence[Pause | Resume], jobs: Mapping[str, LockedJob], operators: Collection[str]
) -> list[Answer]:
    """Each is told as if it had come alone: that it changed nothing is no fault of it."""
    answers = []
    for command in commands:
        job = jobs.get(command.id)
        outcome = Outcome.PAUSED if isinstance(command, Pause) else Outcome.RESUMED
        refused = _refusal(command, job, operators)
        answers.append(refused or Answer(command.id, outcome, job.next_run_at if job else None))
    return answers


def answer_triggers(commands: Sequence[Trigger], stored: StoredTriggers, operators: Collection[str]) -> list[Answer]:
    """One that comes again is told so, even if its job has ended since."""
    first = first_of_each(commands)
    answers = []
    for position, command in enumerate(commands):
        job, key = stored.jobs.get(command.id), (command.id, command.trigger_id)
        is_new = key in stored.new and first[key] == position
        outcome = Outcome.TRIGGERED if is_new else Outcome.DUPLICATE
        refused = _refusal(command, job, operators, heeded=key in stored.heeded)
        answers.append(refused or Answer(command.id, outcome, job.next_run_at if job else None, changed=is_new))
    return answers


def _refusal(
    command: Pause | Resume | Trigger, job: LockedJob | None, operators: Collection[str], *, heeded: bool = False
) -> Answer | None:
    if job is None:
        # It may have overtaken its request: kept, so that a person can send it again.
        return refuse(command.id, "id: there is no such job")
    if not may_command(command.user, job.owner, operators):
        return refuse(command.id, NOT_YOURS)
    if job.status not in OPEN and not heeded:
        return Answer(command.id, Outcome.REJECTED, errors=(f"id: the job is {job.status}",))
    return None
