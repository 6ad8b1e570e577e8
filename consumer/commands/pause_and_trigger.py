"""How pauses, resumes and triggers are carried out and answered. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from consumer.commands.merge import Answer, may_command, refuse
from consumer.commands.parse import Pause, Resume, Trigger
from shared.contract.job_status import OPEN, JobStatus
from shared.contract.messages import Outcome
from shared.contract.wording import NOT_THE_OWNER

TriggerKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LockedJob:
    """A job as it stood when the transaction of the batch had locked its row."""

    status: JobStatus
    next_run_at: datetime | None
    owner: str | None = None
    revision: int = 1
    pause_revision: int = 0  # the highest revision of a pause or resume that was applied


@dataclass(frozen=True, slots=True)
class PauseChange:
    """The change of one job by the pauses and resumes of a step."""

    status: JobStatus
    pause_revision: int


@dataclass(frozen=True, slots=True)
class Paused:
    """The result of a step's pauses and resumes: an answer to each, and the changes of the jobs that change."""

    answers: list[Answer] = field(default_factory=list)
    changes: dict[str, PauseChange] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredTriggers:
    """What a transaction found and did for a batch of triggers."""

    jobs: Mapping[str, LockedJob]
    new: Collection[TriggerKey] = ()  # stored by this transaction
    already_known: Collection[TriggerKey] = ()  # of jobs that have ended: triggers that were fired, or still will be


def first_positions(commands: Sequence[Trigger]) -> dict[TriggerKey, int]:
    """Return the position at which each trigger first stands. Later commands with the same key are duplicates."""
    first: dict[TriggerKey, int] = {}
    for position, command in enumerate(commands):
        first.setdefault((command.id, command.trigger_id), position)
    return first


def pause_jobs(commands: Sequence[Pause | Resume], jobs: Mapping[str, LockedJob], operators: Collection[str]) -> Paused:
    """Carry the commands out, in their order. A job that was paused or resumed already gives the same answer."""
    paused = Paused()
    now = {job_id: PauseChange(job.status, job.pause_revision) for job_id, job in jobs.items()}
    for command in commands:
        job = jobs.get(command.id)
        if refused := _refusal(command, job, operators):
            paused.answers.append(refused)
        elif job and _is_applied(command, now[command.id]):
            paused.answers.append(Answer(command.id, Outcome.DUPLICATE, job.next_run_at))
        elif job and (overtaken := _overtaken(command, job.revision, now[command.id].pause_revision)):
            paused.answers.append(Answer(command.id, Outcome.DUPLICATE, job.next_run_at, (overtaken,)))
        elif job:
            before = now[command.id]
            revision = max(before.pause_revision, command.revision or 0)
            now[command.id] = after = PauseChange(_status_after(command), revision)
            outcome = Outcome.PAUSED if isinstance(command, Pause) else Outcome.RESUMED
            changed = after.status is not before.status
            paused.answers.append(Answer(command.id, outcome, job.next_run_at, changed=changed))
    for job_id, change in now.items():
        if (change.status, change.pause_revision) != (jobs[job_id].status, jobs[job_id].pause_revision):
            paused.changes[job_id] = change
    return paused


def _status_after(command: Pause | Resume) -> JobStatus:
    return JobStatus.PAUSED if isinstance(command, Pause) else JobStatus.PENDING


def _is_applied(command: Pause | Resume, job: PauseChange) -> bool:
    """Return whether the command has come again: it was applied, and no other pause or resume since."""
    return command.revision == job.pause_revision and job.status is _status_after(command)


def _overtaken(command: Pause | Resume, revision: int, pause_revision: int) -> str | None:
    """Say why the command changes nothing, if a request or another pause or resume has overtaken it."""
    if command.revision is None:
        return None
    what = "pause" if isinstance(command, Pause) else "resume"
    if command.revision < revision:
        return (
            f"revision: the job is at revision {revision} already; this {what} speaks of revisions up to "
            f"{command.revision}"
        )
    if command.revision <= pause_revision:
        return (
            f"revision: a pause or resume with revision {pause_revision} was applied already; {what} with a higher one"
        )
    return None


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
