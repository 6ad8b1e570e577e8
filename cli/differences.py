"""What differs between schedules that should be and jobs that are. No I/O."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson

from cli.schedule_file import Wanted
from consumer.commands.schedule import Schedule
from shared.contract.fields import format_instant
from shared.contract.job_status import OPEN, JobStatus
from shared.contract.labels import read_labels
from shared.reading.stored_requests import StoredRequest
from shared.recurrence import RuleSpec

# What is not shown: it may hold a secret.
ANOTHER = "another"


class Action(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be done with one schedule. `fields` has the old and the new value of each that differs."""

    id: str
    action: Action
    content: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    changes: list[Change]
    unchanged: int

    def count(self, action: Action) -> int:
        return sum(change.action is action for change in self.changes)


def plan_changes(
    wanted: Sequence[Wanted], stored: Mapping[str, StoredRequest], to_prune: Mapping[str, int], now: datetime
) -> Plan:
    """Return what is to be done so that all that is wanted is there, and nothing of `to_prune` besides. `to_prune` has
    the revision of each job: a cancel carries it, and leaves a job alone that is scheduled again meanwhile.
    """
    changes: list[Change] = []
    for one in wanted:
        job = stored.get(one.id)
        revision = max(job.revision + 1 if job else 1, _microseconds(now))
        content = {**one.content, "revision": revision}
        if job is None or (job.status is JobStatus.CANCELLED and not _has_passed(one.schedule, now)):
            changes.append(Change(one.id, Action.CREATE, content))
        elif fields := dict(differences(one.schedule, job, now)):
            changes.append(Change(one.id, Action.CHANGE, content, fields))
    unchanged = len(wanted) - len(changes)
    ids = {one.id for one in wanted}
    changes += [
        Change(job_id, Action.CANCEL, {"id": job_id, "revision": revision})
        for job_id, revision in sorted(to_prune.items())
        if job_id not in ids
    ]
    return Plan(changes, unchanged)


def differences(schedule: Schedule, job: StoredRequest, now: datetime) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the fields that differ, with the stored and the wanted value. A one-shot whose moment has passed, and whose
    job has ended, differs in nothing: it would ring at once.
    """
    if job.status not in OPEN and _has_passed(schedule, now):
        return
    yield from _differences_in_time(schedule, job)
    if schedule.topic != job.topic:
        yield "topic", (job.topic, schedule.topic)
    if _json(schedule.payload) != _json(job.payload):
        yield "payload", (ANOTHER, ANOTHER)
    if _json(schedule.webhook) != _json(job.webhook):
        yield "webhook", (ANOTHER, ANOTHER)
    if (wanted := read_labels(schedule.labels)) != job.labels:
        yield "labels", (job.labels, wanted)
    if schedule.misfire != job.misfire:
        yield "misfire", (job.misfire, schedule.misfire.value)
    if schedule.misfire_grace_seconds != job.misfire_grace_seconds:
        yield "misfire_grace_seconds", (job.misfire_grace_seconds, schedule.misfire_grace_seconds)


def _differences_in_time(schedule: Schedule, job: StoredRequest) -> Iterator[tuple[str, tuple[Any, Any]]]:
    old = asdict(RuleSpec.from_json(job.rule)) if job.rule else {}
    new = asdict(schedule.rule) if schedule.rule else {}
    if schedule.starts_when_made and old and new:
        new["start_at"] = old["start_at"]
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield name, (old.get(name), new.get(name))
    moment = None if job.rule else job.next_run_at or job.last_due_at
    wanted = None if schedule.rule else schedule.next_run_at
    if moment != wanted:
        yield "at", (moment and format_instant(moment), wanted and format_instant(wanted))


def _has_passed(schedule: Schedule, now: datetime) -> bool:
    return schedule.rule is None and schedule.next_run_at <= now


def _microseconds(now: datetime) -> int:
    return int(now.timestamp() * 1_000_000)


def _json(text: str | None) -> bytes | None:
    """Return one text for one JSON value. In Python `true`, 1 and 1.0 are equal, and in JSON they are not."""
    return None if text is None else orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS)
