"""A delivery as the dispatcher claims it, without a database."""

from datetime import UTC, datetime
from typing import Any

from delivery.request import Delivery

NOW = datetime(2026, 7, 10, 9, 0, 1, tzinfo=UTC)


def a_delivery(**overrides: Any) -> Delivery:
    fields: dict[str, Any] = {
        "id": 1,
        "version": 2,
        "job_id": "invoice-42",
        "idempotency_key": "event-abc",
        "topic": "invoices.reminder",
        "sequence": 3,
        "due_at": datetime(2026, 7, 10, 9, 0, tzinfo=UTC),
        "fired_at": datetime(2026, 7, 10, 9, 0, 0, 5000, tzinfo=UTC),
        "created_at": NOW,
        "claimed_at": NOW,
        "payload": "{}",
        "url": "https://example.com/hook?x=%20",
        "host": "example.com:443",
        "headers": {},
        "timeout_seconds": 10.0,
        "max_retries": 3,
        "retry_count": 0,
        "secret": None,
    }
    return Delivery(**{**fields, **overrides})
