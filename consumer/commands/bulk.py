"""How bulks are answered, and the single commands of which a step consists. Pure."""

from collections.abc import Collection, Sequence
from typing import assert_never

import msgspec
import orjson
from msgspec.structs import replace

from consumer.commands.merge import Answer, StoredBulk, may_command, refuse
from consumer.commands.parse import Bulk, Cancel, Pause, Resume, Trigger
from shared.contract.history import HistoryEntry, Origin, What
from shared.contract.job_status import JobStatus
from shared.contract.labels import read_labels
from shared.contract.messages import BulkAction, Outcome

SingleCommands = list[Pause] | list[Resume] | list[Cancel] | list[Trigger]

IN_USE = "id: a bulk with this id has another action or selector"
ANOTHER_USER = "user_id: the bulk belongs to another user"


class RunningBulk(msgspec.Struct, frozen=True):
    """The row of a bulk as a step finds it, locked."""

    stored: StoredBulk
    of_operator: bool
    origin: Origin
    traceparent: str | None
    reply_to: str | None
    correlation_id: str | None
    walk_label: str | None
    after_topic: str
    after_id: str

    @property
    def operators(self) -> tuple[str, ...]:
        """The users who may command every job, as far as this bulk needs to know."""
        return (self.stored.user,) if self.of_operator and self.stored.user is not None else ()


class MatchingJob(msgspec.Struct, frozen=True):
    """An open job that the bulk matches."""

    id: str
    status: JobStatus


def answer_bulk(bulk: Bulk, known: StoredBulk | None, operators: Collection[str]) -> Answer:
    """Answer a bulk. `known` is one with the same id that was there before; None: this one is stored."""
    if known is None:
        return Answer(bulk.id, Outcome.ACCEPTED, replies=False)
    if not may_command(bulk.user, known.user, operators):
        return refuse(bulk.id, ANOTHER_USER)
    if not is_same(bulk, known):
        return Answer(bulk.id, Outcome.DUPLICATE, errors=(IN_USE,), bulk=known)
    if known.finished_at is None:
        return Answer(bulk.id, Outcome.DUPLICATE, replies=False)
    return Answer(bulk.id, Outcome.DUPLICATE, bulk=known)


def is_same(bulk: Bulk, known: StoredBulk) -> bool:
    """Return whether the bulk asks for what the known one does."""
    return (bulk.action, bulk.dry_run, bulk.topic, bulk.id_prefix, read_labels(bulk.labels)) == (
        known.action,
        known.dry_run,
        known.topic,
        known.id_prefix,
        read_labels(known.labels),
    )


def commands_for(bulk: RunningBulk, ids: Sequence[str]) -> SingleCommands:
    """Return the command for each job, as its sender could have sent it."""
    user, origin = bulk.stored.user, bulk.origin
    match bulk.stored.action:
        case BulkAction.PAUSE:
            return [Pause(job_id, user, origin=origin) for job_id in ids]
        case BulkAction.RESUME:
            return [Resume(job_id, user, origin=origin) for job_id in ids]
        case BulkAction.CANCEL:
            return [Cancel(job_id, user, origin=origin) for job_id in ids]
        case BulkAction.TRIGGER:
            return [Trigger(each, bulk.stored.id, None, bulk.traceparent, user, origin) for each in ids]
        case _:
            assert_never(bulk.stored.action)


def would_change(action: BulkAction, status: JobStatus) -> bool:
    """Return whether the action changes an open job, for a dry run."""
    match action:
        case BulkAction.PAUSE:
            return status is JobStatus.PENDING
        case BulkAction.RESUME:
            return status is JobStatus.PAUSED
        case BulkAction.CANCEL | BulkAction.TRIGGER:
            return True
        case _:
            assert_never(action)


def tell_as_part(entries: Sequence[HistoryEntry], bulk_id: str) -> list[HistoryEntry]:
    """Return the entries of changed jobs, each with the id of the bulk."""
    return [
        replace(entry, details=_with_bulk(entry.details, bulk_id)) for entry in entries if entry.what != What.REJECTED
    ]


def _with_bulk(details: str | None, bulk_id: str) -> str:
    return orjson.dumps({**orjson.loads(details or "{}"), "bulk": bulk_id}).decode()


def tell_finished(bulk: RunningBulk, matched: int, changed: int) -> HistoryEntry:
    """Tell of the whole bulk, under its id."""
    selector = {
        "labels": read_labels(bulk.stored.labels),
        "topic": bulk.stored.topic,
        "id_prefix": bulk.stored.id_prefix,
    }
    details = {
        "action": bulk.stored.action,
        "selector": {name: value for name, value in selector.items() if value is not None},
        "matched": matched,
        "changed": changed,
    }
    return HistoryEntry(
        bulk.stored.id,
        What.BULK,
        by_user=bulk.stored.user,
        app_id=bulk.origin.app_id,
        operator=bulk.origin.operator,
        note=bulk.origin.note,
        details=orjson.dumps(details).decode(),
    )
