"""How late, and where the time went."""

from datetime import timedelta

import structlog
from msgspec.structs import replace

from delivery.results.recorder import log_if_late, main_cause_of_lateness
from shared.runtime.limited_lines import LimitedLines
from tests.unit.delivery.test_request import A_DELIVERY

DUE = A_DELIVERY.due_at
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


def test_the_reason_is_where_most_of_the_time_went() -> None:
    after_downtime = replace(A_DELIVERY, fired_at=DUE + 19 * HOUR, created_at=DUE + 19 * HOUR + SECOND)
    assert main_cause_of_lateness(after_downtime, DUE + 19 * HOUR + 2 * SECOND) == "recovery from downtime"
    queued = replace(A_DELIVERY, fired_at=DUE + SECOND, created_at=DUE + HOUR)
    assert main_cause_of_lateness(queued, DUE + HOUR + SECOND) == "waited in the queue"
    prompt = replace(A_DELIVERY, fired_at=DUE + SECOND, created_at=DUE + 2 * SECOND)
    assert main_cause_of_lateness(prompt, DUE + HOUR) == "waited for its turn"
    assert main_cause_of_lateness(replace(prompt, retry_count=2), DUE + HOUR) == "retries"


def test_a_late_one_is_logged_with_its_minutes_and_its_key() -> None:
    late = replace(A_DELIVERY, fired_at=DUE + 19 * HOUR, created_at=DUE + 19 * HOUR)
    with structlog.testing.capture_logs() as logs:
        assert not log_if_late(A_DELIVERY, DUE + 59 * SECOND, LimitedLines())
        assert log_if_late(late, DUE + 19 * HOUR + 5 * SECOND, LimitedLines())
    assert logs == [
        {
            "event": "delivered_late",
            "log_level": "warning",
            "idempotency_key": "event-abc",
            "id": "invoice-42",
            "due_at": "2026-07-10T09:00:00Z",
            "delivered_at": "2026-07-11T04:00:05Z",
            "late_minutes": 1140,
            "late_hours": 19.0,
            "reason": "recovery from downtime",
        }
    ]
