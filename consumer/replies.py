"""Writes the reply to a command."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

import orjson

from consumer.commands.merge import Answer, FoundJob, StoredBulk
from consumer.commands.schedule import MAX_UPCOMING, upcoming
from shared.amqp.message import IncomingMessage, OutgoingMessage
from shared.contract.fields import AS_INSTANTS
from shared.contract.history import HistoryEntry
from shared.contract.labels import read_labels
from shared.contract.messages import REPLY_TYPE
from shared.recurrence import RuleSpec
from shared.runtime.loops import LoopYielder


async def reply_to(message: IncomingMessage, answer: Answer, yielder: LoopYielder) -> OutgoingMessage:
    """Return the reply to the command. Other tasks can run after each instant, because a rule may take long for one."""
    instants = []
    for instant in _upcoming(answer):
        instants.append(instant)
        await yielder.give_way()
    reply = {
        "id": answer.id,
        "outcome": answer.outcome,
        "next_run_at": answer.next_run_at,
        "upcoming": instants,
        "errors": answer.errors,
        **(_state(answer.found) if answer.found else {}),
        **({"bulk": bulk_as_told(answer.bulk)} if answer.bulk else {}),
    }
    return OutgoingMessage(
        exchange="",
        routing_key=message.reply_to or "",
        body=orjson.dumps(reply, option=AS_INSTANTS),
        type=REPLY_TYPE,
        correlation_id=message.correlation_id,
        mandatory=False,
    )


def _upcoming(answer: Answer) -> Iterator[datetime]:
    if answer.schedule:
        schedule = answer.schedule
        return islice(upcoming(schedule.rule, schedule.next_run_at, schedule.rule_index), MAX_UPCOMING)
    job = answer.found
    if job and answer.query and job.next_run_at:
        rule = RuleSpec.from_json(job.rule) if job.rule else None
        return islice(upcoming(rule, job.next_run_at, job.rule_index), answer.query.upcoming)
    return iter(())


def bulk_as_told(bulk: StoredBulk) -> dict[str, Any]:
    """Return how a bulk stands, as replies say it."""
    return {
        "action": bulk.action,
        "dry_run": bulk.dry_run,
        "matched": bulk.matched,
        "changed": bulk.changed,
        "requested_at": bulk.requested_at,
        "finished_at": bulk.finished_at,
    }


def _state(job: FoundJob) -> dict[str, Any]:
    """Return the fields that only the answer to a query has."""
    return {
        "status": job.status,
        "revision": job.revision,
        "topic": job.topic,
        "sequence": job.sequence,
        "last_due_at": job.last_due_at,
        "labels": read_labels(job.labels),
        "history": [_entry(entry) for entry in job.history],
    }


def _entry(entry: HistoryEntry) -> dict[str, Any]:
    """Return an entry without what does not apply to it."""
    told = {
        "at": entry.at,
        "what": entry.what,
        "life": entry.life,
        "revision": entry.revision,
        "sequence": entry.sequence,
        "due_at": entry.due_at,
        "by_user": entry.by_user,
        "app_id": entry.app_id,
        "operator": entry.operator,
        "note": entry.note,
        "details": None if entry.details is None else orjson.Fragment(entry.details),
    }
    return {name: value for name, value in told.items() if value is not None}
