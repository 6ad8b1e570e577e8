"""Builders of valid commands and rows: a test passes only the fields that it is about."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from consumer.commands.schedule import Schedule
from delivery.model import Delivery
from producer.decisions.plan import DueJob
from shared.contract.fields import format_instant
from shared.contract.messages import Misfire
from shared.recurrence import Occurrence, RuleSpec

NOON = datetime(2030, 6, 1, 12, 0, 0, tzinfo=UTC)


def in_seconds(seconds: float) -> str:
    """An instant from now, as a message writes it."""
    return format_instant(datetime.now(UTC) + timedelta(seconds=seconds))


def a_request(**overrides: Any) -> dict[str, Any]:
    return {"id": "job-1", "at": "2030-06-01T12:00:00Z", **overrides}


def a_rule_request(**overrides: Any) -> dict[str, Any]:
    return {"id": "job-1", "rrule": "FREQ=DAILY", "start_at": "2030-06-01T12:00:00Z", **overrides}


def a_schedule(**overrides: Any) -> Schedule:
    fields: dict[str, Any] = {
        "id": "job-1",
        "revision": 1,
        "topic": "default",
        "payload": None,
        "webhook": None,
        "rule": None,
        "rule_index": 1,
        "misfire": Misfire.ALL,
        "misfire_grace_seconds": 60,
        "next_run_at": NOON,
    }
    return Schedule(**{**fields, **overrides})


def a_due_job(**overrides: Any) -> DueJob:
    fields: dict[str, Any] = {
        "id": "job-1",
        "version": 1,
        "topic": "default",
        "payload": None,
        "webhook": None,
        "rule": None,
        "occurrence": Occurrence(NOON, 1),
        "misfire": Misfire.ALL,
        "misfire_grace": timedelta(seconds=60),
        "sequence": 0,
        "refusals": 0,
    }
    return DueJob(**{**fields, **overrides})


def minutely(**overrides: Any) -> str:
    return RuleSpec(**{"start_at": "2030-06-01T12:00:00Z", "rrule": "FREQ=MINUTELY", **overrides}).to_json()


def a_delivery(**overrides: Any) -> Delivery:
    """Make a delivery as the dispatcher claims it."""
    claimed_at = datetime(2026, 7, 10, 9, 0, 1, tzinfo=UTC)
    fields: dict[str, Any] = {
        "id": 1,
        "version": 2,
        "job_id": "invoice-42",
        "idempotency_key": "event-abc",
        "topic": "invoices.reminder",
        "sequence": 3,
        "due_at": datetime(2026, 7, 10, 9, 0, tzinfo=UTC),
        "fired_at": datetime(2026, 7, 10, 9, 0, 0, 5000, tzinfo=UTC),
        "created_at": claimed_at,
        "claimed_at": claimed_at,
        "payload": "{}",
        "url": "https://example.com/hook?x=%20",
        "host": "example.com:443",
        "headers": {},
        "timeout_seconds": 10.0,
        "max_retries": 3,
        "retry_count": 0,
        "secret": None,
    }
    given = {**fields, **overrides}
    return Delivery(**{**given, "headers": json.dumps(given["headers"])})
