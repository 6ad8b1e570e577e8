"""Deliveries that came late: how late, and why. Pure, but for the log line."""

from datetime import datetime

from delivery.model import Delivery
from shared.contract.fields import format_instant, trace_headers
from shared.runtime.lateness import LATE_AFTER
from shared.runtime.logs import get_log


def why_late(delivery: Delivery, delivered_at: datetime) -> str:
    """Where most of the time went."""
    shares = {
        "recovery from downtime": delivery.fired_at - delivery.due_at,
        "waited in the queue": delivery.created_at - delivery.fired_at,
        "retries" if delivery.retry_count else "waited for its turn": delivered_at - delivery.created_at,
    }
    return max(shares, key=lambda reason: shares[reason])


def log_if_late(delivery: Delivery, delivered_at: datetime) -> bool:
    lateness = delivered_at - delivery.due_at
    if lateness <= LATE_AFTER:
        return False
    minutes = lateness.total_seconds() / 60
    get_log().warning(
        "delivered_late",
        idempotency_key=delivery.idempotency_key,
        id=delivery.job_id,
        due_at=format_instant(delivery.due_at),
        delivered_at=format_instant(delivered_at),
        late_minutes=int(minutes),
        late_hours=round(minutes / 60, 1),
        reason=why_late(delivery, delivered_at),
        **trace_headers(delivery.traceparent),
    )
    return True
