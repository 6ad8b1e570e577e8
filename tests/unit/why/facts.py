"""Facts about an id, for tests: only what a test says differs from an ordinary job."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shared.contract.history import What
from shared.contract.job_status import JobStatus
from shared.why.facts import Delivery, Entry, Facts, Job, Process

NOW = datetime(2026, 7, 10, 9, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def a_job(**values: Any) -> Job:
    """A one-shot that is due in an hour."""
    job: dict[str, Any] = {
        "status": JobStatus.PENDING,
        "topic": "money.due",
        "revision": 1,
        "life": 1,
        "sequence": 0,
        "refusals": 0,
        "misfire": "all",
        "next_run_at": NOW + 60 * MINUTE,
        "retry_at": None,
        "last_due_at": None,
        "finished_at": None,
        "timezone": None,
        "webhook_url": None,
        "owner": None,
    }
    return Job(**{**job, **values})


def a_done_job(**values: Any) -> Job:
    """A one-shot that fired a minute ago."""
    done = {
        "status": JobStatus.DONE,
        "next_run_at": None,
        "sequence": 1,
        "last_due_at": NOW - MINUTE,
        "finished_at": NOW - MINUTE,
    }
    return a_job(**{**done, **values})


def an_entry(what: str, minutes_ago: float = 1, **values: Any) -> Entry:
    return Entry(what=what, at=NOW - minutes_ago * MINUTE, **values)


def a_firing(minutes_ago: float = 1, **values: Any) -> Entry:
    """The first occurrence, published 12 ms after its moment."""
    due_at = NOW - minutes_ago * MINUTE
    fired = {"what": What.FIRED, "at": due_at + timedelta(milliseconds=12), "due_at": due_at, "sequence": 1}
    return Entry(**{**fired, **values})


def a_delivery(**values: Any) -> Delivery:
    """The first call of the first occurrence, which was answered."""
    delivery: dict[str, Any] = {
        "id": 7,
        "sequence": 1,
        "due_at": NOW - MINUTE,
        "status": "COMPLETED",
        "host": "example.com:443",
        "attempts": 1,
        "attempts_allowed": 4,
        "next_attempt_at": None,
        "finished_at": NOW - MINUTE,
        "failure_reason": None,
        "secret": None,
        "last_status_code": 200,
        "last_error": None,
        "last_answer": None,
    }
    return Delivery(**{**delivery, **values})


def an_open_delivery(**values: Any) -> Delivery:
    waits = {"status": "PROCESSING", "finished_at": None, "next_attempt_at": NOW + MINUTE, "last_status_code": 503}
    return a_delivery(**{**waits, **values})


def running(*services: str, **values: Any) -> list[Process]:
    """Processes that were seen a second ago."""
    seen = {"seen_at": NOW - timedelta(seconds=1), "is_running": True}
    return [Process(**{"service": name, **seen, **values}) for name in services]


def facts(job: Job | None = None, *entries: Entry, **values: Any) -> Facts:
    """Every service runs, unless a test says otherwise."""
    known: dict[str, Any] = {"processes": running("consumer", "producer", "delivery")}
    return Facts(job_id="invoice-42", now=NOW, job=job, entries=entries, **{**known, **values})
