"""The form for a new schedule, filled with a stored one: what is not changed there stays as it is. No I/O."""

from datetime import datetime, tzinfo
from typing import Any

from console.foretelling import webhook_url
from shared.reading.jobs import Job
from shared.recurrence import RuleSpec


def filled_again(job: Job, zone: tzinfo, *, sees_payloads: bool) -> dict[str, str]:
    """Return the fields, with a moment as a time of the zone. The values of a webhook's headers, and for a reader
    without the right to payloads the query of its address, are a sign that the consumer refuses: the visitor writes
    them again, or takes them out.
    """
    fields: dict[str, Any] = {
        "id": job.id,
        "topic": job.topic,
        "labels": "\n".join(f"{key}={value}" for key, value in (job.labels or {}).items()),
        "payload": job.payload if sees_payloads else None,
        **(_fields_of_rule(RuleSpec.from_json(job.rule)) if job.rule else _fields_of_moment(job.next_run_at, zone)),
    }
    if job.misfire != "all":
        fields |= {"misfire": job.misfire, "misfire_grace_seconds": job.misfire_grace_seconds}
    if job.webhook:
        fields |= {name: job.webhook.get(name) for name in ("secret", "timeout_seconds", "max_retries")}
        fields["url"] = webhook_url(job, whole=sees_payloads)
        fields["headers"] = "\n".join(f"{name}: {value}" for name, value in job.webhook["headers"].items())
    return {name: str(value) for name, value in fields.items() if value is not None}


def _fields_of_moment(moment: datetime | None, zone: tzinfo) -> dict[str, Any]:
    """Return the moment of a schedule that has not ended: with its offset where the clocks show its time twice."""
    if moment is None:
        return {"kind": "at"}
    local = moment.astimezone(zone)
    is_twice = local.replace(fold=1 - local.fold).utcoffset() != local.utcoffset()
    return {"kind": "at", "at": (local if is_twice else local.replace(tzinfo=None)).isoformat()}


def _fields_of_rule(rule: RuleSpec) -> dict[str, Any]:
    kinds = {"rrule": rule.rrule, "cron": rule.cron, "every_seconds": rule.every_seconds}
    [(kind, value)] = [(kind, value) for kind, value in kinds.items() if value is not None]
    return {
        "kind": kind, kind: value, "timezone": rule.timezone, "dst_gap": rule.dst_gap, "dst_fold": rule.dst_fold,
        "start_at": rule.start_at,
    }  # fmt: skip
