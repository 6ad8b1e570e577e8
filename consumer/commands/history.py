"""What the history tells of each command: entries for the answers of a step. A command that changed nothing has an
entry only if its application may not know why. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

import orjson

from consumer.commands.cancel import CancelledJob
from consumer.commands.merge import Answer, Content, StoredJob, content_of
from consumer.commands.parse import Bulk, Cancel, Pause, Refused, Resume, Trigger
from consumer.commands.pause_and_trigger import LockedJob
from consumer.commands.schedule import Schedule
from shared.contract.fields import format_instant
from shared.contract.history import HistoryEntry, What
from shared.contract.labels import read_labels
from shared.contract.messages import Outcome

AnyCommand: TypeAlias = Schedule | Cancel | Pause | Resume | Trigger | Bulk | Refused

_WHAT = {
    Outcome.ACCEPTED: What.ACCEPTED,
    Outcome.RESCHEDULED: What.RESCHEDULED,
    Outcome.CANCELLED: What.CANCELLED,
    Outcome.UNKNOWN: What.CLOSED,
    Outcome.PAUSED: What.PAUSED,
    Outcome.RESUMED: What.RESUMED,
    Outcome.TRIGGERED: What.TRIGGERED,
}


def tell_refused(commands: Sequence[Refused]) -> Iterator[HistoryEntry]:
    """Tell of commands that could not be read, as far as their ids could. A query, which is not parked, is left out.

    The id may be what was refused: Postgres stores no NUL.
    """
    for command in commands:
        if command.id is not None and command.parked:
            yield _rejected(command.id.replace("\0", ""), command, command.errors, parked=True)


def tell_requests(
    requests: Sequence[Schedule], answers: Sequence[Answer], jobs: Mapping[str, StoredJob]
) -> Iterator[HistoryEntry]:
    """Tell of requests: what was accepted, what a reschedule changed, and why the others changed nothing."""
    for request, answer in zip(requests, answers, strict=True):
        job = jobs[request.id]
        if not answer.changed:
            yield from _tell_unchanged(request, answer)
            continue
        details = _described(request) if job.before is None or job.created else _changes(request, job.before)
        yield _entry(
            request.id,
            request,
            _WHAT[answer.outcome],
            life=job.life,
            revision=request.revision,
            due_at=request.next_run_at,
            details=details,
        )


def tell_cancels(
    cancels: Sequence[Cancel],
    answers: Sequence[Answer],
    jobs: Mapping[str, CancelledJob],
    revisions: Mapping[str, int],
) -> Iterator[HistoryEntry]:
    """Tell of cancels: which run was cancelled. `jobs` are as they were before, `revisions` what the cancels closed."""
    for cancel, answer in zip(cancels, answers, strict=True):
        if not answer.changed:
            yield from _tell_unchanged(cancel, answer)
            continue
        job = jobs.get(cancel.id)
        yield _entry(
            cancel.id,
            cancel,
            _WHAT[answer.outcome],
            life=job.life if job else None,
            revision=revisions[cancel.id],
            due_at=job.next_run_at if job else None,
        )


def tell_pauses(
    commands: Sequence[Pause | Resume], answers: Sequence[Answer], jobs: Mapping[str, LockedJob]
) -> Iterator[HistoryEntry]:
    """Tell of pauses and resumes."""
    for command, answer in zip(commands, answers, strict=True):
        if answer.changed:
            next_run_at = jobs[command.id].next_run_at
            yield _entry(command.id, command, _WHAT[answer.outcome], revision=command.revision, due_at=next_run_at)
        else:
            yield from _tell_unchanged(command, answer)


def tell_triggers(commands: Sequence[Trigger], answers: Sequence[Answer]) -> Iterator[HistoryEntry]:
    """Tell of triggers."""
    for command, answer in zip(commands, answers, strict=True):
        if answer.changed:
            yield _entry(command.id, command, What.TRIGGERED, details={"trigger_id": command.trigger_id})
        else:
            yield from _tell_unchanged(command, answer)


def tell_bulks(bulks: Sequence[Bulk], answers: Sequence[Answer]) -> Iterator[HistoryEntry]:
    """Tell of bulks that were rejected. Of the others the history tells when they are finished."""
    for bulk, answer in zip(bulks, answers, strict=True):
        yield from _tell_unchanged(bulk, answer)


def _tell_unchanged(command: AnyCommand, answer: Answer) -> Iterator[HistoryEntry]:
    if command.id is None or not answer.errors:
        return
    if answer.outcome is Outcome.REJECTED:
        yield _rejected(command.id, command, answer.errors, parked=answer.parked)
    elif answer.outcome is Outcome.DUPLICATE and isinstance(command, Schedule):
        yield _entry(command.id, command, What.DUPLICATE, revision=command.revision, details={"errors": answer.errors})


def _rejected(job_id: str, command: AnyCommand, errors: Sequence[str], *, parked: bool) -> HistoryEntry:
    details: dict[str, object] = {"errors": errors}
    if not isinstance(command, Refused):
        details["command"] = type(command).__name__.lower()
    if not parked:
        details["parked"] = False
    return _entry(job_id, command, What.REJECTED, details=details)


def _described(request: Schedule) -> dict[str, object]:
    """Return what a new schedule is, without its payload and its webhook, which may hold secrets."""
    described: dict[str, object] = {"topic": request.topic}
    if request.rule is not None:
        described["rule"] = orjson.Fragment(request.rule.to_json())
    if request.webhook is not None:
        described["webhook"] = True
    if request.labels is not None:
        described["labels"] = orjson.Fragment(request.labels)
    return described


def _changes(request: Schedule, before: Content) -> dict[str, object]:
    """Return what a reschedule changed: the old and the new value, or only that it is another one."""
    after = content_of(request)
    changed: dict[str, object] = {}
    if after.next_run_at != before.next_run_at:
        changed["next_run_at"] = [
            instant and format_instant(instant) for instant in (before.next_run_at, after.next_run_at)
        ]
    if after.topic != before.topic:
        changed["topic"] = [before.topic, after.topic]
    if after.rule != before.rule:
        changed["rule"] = [orjson.Fragment(rule) if rule else None for rule in (before.rule, after.rule)]
    if after.payload != before.payload:
        changed["payload"] = "another"
    if after.webhook != before.webhook:
        changed["webhook"] = "another"
    if (labels := [read_labels(before.labels), read_labels(after.labels)]) and labels[0] != labels[1]:
        changed["labels"] = labels
    return {"changed": changed}


def _entry(  # noqa: PLR0913 - the columns of an entry, by name
    job_id: str,
    command: AnyCommand,
    what: What,
    *,
    life: int | None = None,
    revision: int | None = None,
    due_at: datetime | None = None,
    details: Mapping[str, object] | None = None,
) -> HistoryEntry:
    return HistoryEntry(
        job_id,
        what,
        life=life,
        revision=revision,
        due_at=due_at,
        by_user=command.user,
        app_id=command.origin.app_id,
        operator=command.origin.operator,
        note=command.origin.note,
        details=None if details is None else orjson.dumps(details).decode(),
    )
