"""What a batch of commands comes to, id by id, and what each command is told. Pure.

Commands reach several consumers in any order, so the outcome must not depend on it: a cancel wins over every request,
and among requests the highest revision wins. Folding a batch by id first also gives the SQL one row per id.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from consumer.commands import Cancel, Command, Refused, Schedule
from shared.job_states import JobStatus
from shared.messages import Outcome

Change = Schedule | Cancel


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
    parked: bool = False


def fold(commands: Iterable[Command]) -> list[Change]:
    """One change per id, in the order of ids: two consumers that lock the same rows meet in the same order."""
    changes: dict[str, Change] = {}
    for command in commands:
        match command:
            case Cancel():
                changes[command.id] = command
            case Schedule():
                held = changes.get(command.id)
                if held is None or (isinstance(held, Schedule) and command.revision > held.revision):
                    changes[command.id] = command
            case Refused():
                pass
            case _:
                assert_never(command)
    return [changes[job_id] for job_id in sorted(changes)]


def answer(command: Command, changes: Mapping[str, Change], stored: Mapping[str, StoredJob]) -> Answer:
    match command:
        case Refused():
            return Answer(command.id, Outcome.REJECTED, errors=command.errors, parked=True)
        case Cancel():
            return _answer_cancel(command, changes[command.id] is command, stored[command.id])
        case Schedule():
            return _answer_request(command, changes[command.id] is command, stored[command.id])
        case _:
            assert_never(command)


def _answer_cancel(cancel: Cancel, is_the_winner: bool, job: StoredJob) -> Answer:
    if job.status is JobStatus.CANCELLED:
        return Answer(cancel.id, Outcome.CANCELLED, changed=is_the_winner and job.applied)
    return Answer(cancel.id, Outcome.REJECTED, errors=(f"id: the cancel came late, the job is {job.status}",))


def _answer_request(request: Schedule, is_the_winner: bool, job: StoredJob) -> Answer:
    match job.status:
        case JobStatus.CANCELLED:
            # The cancel overtook its request: nothing is wrong, and nothing will ring.
            return Answer(request.id, Outcome.CANCELLED)
        case JobStatus.PENDING | JobStatus.DONE if is_the_winner and job.applied:
            outcome = Outcome.ACCEPTED if job.created else Outcome.RESCHEDULED
            return Answer(request.id, outcome, job.next_run_at, changed=True)
        case JobStatus.DONE if request.revision > job.revision:
            # Nothing leaves a terminal state, but nothing is lost either: the request is kept for a person to see.
            late = f"revision: {request.revision} came late, the job is done; schedule it under another id"
            return Answer(request.id, Outcome.REJECTED, errors=(late,), parked=True)
        case JobStatus.PENDING | JobStatus.DONE:
            return Answer(request.id, Outcome.DUPLICATE, job.next_run_at)
        case _:
            assert_never(job.status)
