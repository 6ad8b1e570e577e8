"""How pauses, resumes and triggers are merged and answered. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from consumer.commands.merge import NOT_THE_OWNER, Answer, may_command, refuse
from consumer.commands.parse import Pause, Resume, Trigger
from shared.contract.job_status import OPEN, JobStatus
from shared.contract.messages import Outcome

TriggerKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LockedJob:
    """A job as it stood when the transaction of the batch had locked its row."""

    status: JobStatus
    next_run_at: datetime | None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class StoredTriggers:
    """What a transaction found and did for a batch of triggers."""

    jobs: Mapping[str, LockedJob]
    new: Collection[TriggerKey] = ()  # stored by this transaction
    already_known: Collection[TriggerKey] = ()  # of jobs that have ended: triggers that were fired, or still will be


def last_per_job(commands: Sequence[Pause | Resume]) -> dict[str, Pause | Resume]:
    """Return the command that counts for each job: the last to arrive."""
    return {command.id: command for command in commands}


def first_positions(commands: Sequence[Trigger]) -> dict[TriggerKey, int]:
    """Return the position at which each trigger first stands. Later commands with the same key are duplicates."""
    first: dict[TriggerKey, int] = {}
    for position, command in enumerate(commands):
        first.setdefault((command.id, command.trigger_id), position)
    return first


def answer_pauses(
    commands: Sequence[Pause | Resume], jobs: Mapping[str, LockedJob], operators: Collection[str]
) -> list[Answer]:
    """Answer each command as if it had come alone: a job that was paused or resumed already gives the same answer."""
    answers = []
    for command in commands:
        job = jobs.get(command.id)
        outcome = Outcome.PAUSED if isinstance(command, Pause) else Outcome.RESUMED
        refused = _refusal(command, job, operators)
        answers.append(refused or Answer(command.id, outcome, job.next_run_at if job else None))
    return answers


def answer_triggers(commands: Sequence[Trigger], stored: StoredTriggers, operators: Collection[str]) -> list[Answer]:
    """Answer each trigger. One that comes again is a duplicate, even if its job has ended since."""
    first = first_positions(commands)
    answers = []
    for position, command in enumerate(commands):
        job, key = stored.jobs.get(command.id), (command.id, command.trigger_id)
        is_new = key in stored.new and first[key] == position
        outcome = Outcome.TRIGGERED if is_new else Outcome.DUPLICATE
        refused = _refusal(command, job, operators, already_known=key in stored.already_known)
        answers.append(refused or Answer(command.id, outcome, job.next_run_at if job else None, changed=is_new))
    return answers


def _refusal(
    command: Pause | Resume | Trigger, job: LockedJob | None, operators: Collection[str], *, already_known: bool = False
) -> Answer | None:
    if job is None:
        # The command may have overtaken its request. It is parked, so that an operator can send it again.
        return refuse(command.id, "id: there is no such job")
    if not may_command(command.user, job.owner, operators):
        return refuse(command.id, NOT_THE_OWNER)
    if job.status not in OPEN and not already_known:
        return Answer(command.id, Outcome.REJECTED, errors=(f"id: the job is {job.status}",))
    return None
