"""What would become of a ScheduleRequest now, and how a stored schedule reads. It reads what is known."""

from collections.abc import Mapping
from typing import Any

from console.web.context import Visit
from consumer.commands.schedule import Schedule
from shared.contract.messages import Outcome
from shared.reading.jobs import Job, read_job
from shared.reading.rules import describe_rule
from shared.recurrence import BadRule, Occurrence, RuleSpec
from shared.recurrence.marked import MarkedOccurrence, marked_occurrences

PREVIEWED = 6
UPCOMING = 10


async def read_known(visit: Visit, job_id: str) -> Job | None:
    async with visit.console.reading() as connection:
        return await read_job(connection, job_id)


def next_revision(known: Job | None) -> int:
    """Return the revision that replaces what is known, and leaves room for an application that counts by one."""
    return known.revision + 1 if known else 1


def foretell(revision: int | None, known: Job | None) -> Outcome:
    """Return the outcome of a request that can be read. Without a revision it would get the next one."""
    if known is None:
        return Outcome.ACCEPTED
    if revision is not None and revision <= known.revision:
        return Outcome.DUPLICATE
    return Outcome.RESCHEDULED if known.status in {"pending", "paused"} else Outcome.ACCEPTED


def left_out(content: Mapping[str, Any], known: Job | None) -> list[str]:
    """Return the fields that the known schedule has and the request has not: a request replaces the whole schedule."""
    if known is None:
        return []
    has = {
        "payload": known.payload is not None,
        "webhook": known.webhook is not None,
        "labels": bool(known.labels),
        "misfire": known.misfire != "all",
    }
    return [name for name in has if has[name] and name not in content]


def occurrences_of(schedule: Schedule) -> list[MarkedOccurrence]:
    """Return the first occurrences of a request."""
    return _marked(schedule.rule, Occurrence(schedule.next_run_at, schedule.rule_index), PREVIEWED)


def upcoming_of(job: Job | None, rule: RuleSpec | None) -> list[MarkedOccurrence]:
    """Return the next occurrences of a stored schedule; none if its rule cannot be read."""
    if job is None or job.next_run_at is None:
        return []
    return _marked(rule, Occurrence(job.next_run_at, job.rule_index), UPCOMING)


def _marked(rule: RuleSpec | None, first: Occurrence, count: int) -> list[MarkedOccurrence]:
    if rule is None:
        return [MarkedOccurrence(first.at, "", None)]
    try:
        return marked_occurrences(rule, count, first)
    except BadRule:
        return []


def rule_in_words(rule: RuleSpec | None) -> str:
    if rule is None:
        return "once"
    return describe_rule(rule.rrule, rule.cron, rule.every_seconds, rule.timezone, rule.start_at)


def webhook_url(job: Job | None, *, whole: bool) -> str:
    """Return the webhook's address. Its query may carry a secret."""
    url = str(job.webhook["url"]) if job and job.webhook else ""
    before, mark, _ = url.partition("?")
    return url if whole or not mark else f"{before}?…"
