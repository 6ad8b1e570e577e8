"""What is written about a delivery after a call, or after a row was given back without one. Pure."""

from datetime import datetime, timedelta
from typing import assert_never

import msgspec

from delivery.attempt.retry import Answered, CallResult, Delivered, GiveUp, Outcome, Postpone, Retry, Unanswered
from delivery.model import Delivery
from delivery.status import DeliveryStatus, checked_move


class AttemptRow(msgspec.Struct, frozen=True, gc=False):
    started_at: datetime
    duration: timedelta
    status_code: int | None
    error: str | None
    answer: bytes | None


class DeliveryUpdate(msgspec.Struct, frozen=True, gc=False):
    delivery: Delivery
    status: DeliveryStatus
    retry_count: int
    pause: timedelta | None
    reason: str | None
    attempt: AttemptRow | None


def update_after_call(
    delivery: Delivery, result: CallResult, outcome: Outcome, started_at: datetime, duration: timedelta
) -> DeliveryUpdate:
    """A claimed row is PROCESSING; its next state is checked against the table of legal moves."""
    attempt = _attempt_row(result, started_at, duration)
    match outcome:
        case Delivered():
            status, retry_count, pause, reason = DeliveryStatus.COMPLETED, delivery.retry_count, None, None
        case Retry(after=after, reason=why):
            status, retry_count, pause, reason = DeliveryStatus.PROCESSING, delivery.retry_count + 1, after, why
        case Postpone(after=after, reason=why):
            return given_back(delivery, after, why)
        case GiveUp(reason=why):
            status, retry_count, pause, reason = DeliveryStatus.FAILED, delivery.retry_count, None, why
        case _:
            assert_never(outcome)
    status = checked_move(DeliveryStatus.PROCESSING, status)
    return DeliveryUpdate(delivery, status, retry_count, pause, reason, attempt)


def given_back(delivery: Delivery, pause: timedelta = timedelta(0), reason: str | None = None) -> DeliveryUpdate:
    """There was no call, or it was abandoned: the row is due again for any replica, and no attempt is spent."""
    status = checked_move(DeliveryStatus.PROCESSING, DeliveryStatus.PROCESSING)
    return DeliveryUpdate(delivery, status, delivery.retry_count, pause, reason, None)


def _attempt_row(result: CallResult, started_at: datetime, duration: timedelta) -> AttemptRow:
    match result:
        case Answered(status=status, body=body):
            return AttemptRow(started_at, duration, status, None, body)
        case Unanswered(error=error):
            return AttemptRow(started_at, duration, None, error, None)
        case _:
            assert_never(result)
