"""From an outcome to what is written about it. Pure."""

from datetime import datetime, timedelta
from typing import assert_never

import msgspec

from delivery.model import Delivery
from delivery.outcomes import Answered, CallResult, Delivered, GiveUp, Outcome, Postpone, Retry, Unanswered
from delivery.states import DeliveryStatus, checked_move


class AttemptRow(msgspec.Struct, frozen=True, gc=False):
    started_at: datetime
    duration: timedelta
    status_code: int | None
    error: str | None
    answer: bytes | None


class Recorded(msgspec.Struct, frozen=True, gc=False):
    delivery: Delivery
    status: DeliveryStatus
    retry_count: int
    pause: timedelta | None
    reason: str | None
    attempt: AttemptRow | None


def recorded(
    delivery: Delivery, result: CallResult, outcome: Outcome, started_at: datetime, duration: timedelta
) -> Recorded:
    """A claimed row is PROCESSING; where it goes from there is checked against the table of legal moves."""
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
    return Recorded(delivery, checked_move(DeliveryStatus.PROCESSING, status), retry_count, pause, reason, attempt)


def given_back(delivery: Delivery, pause: timedelta = timedelta(0), reason: str | None = None) -> Recorded:
    """There was no call, or it was abandoned: due again, for somebody else, and no attempt is spent."""
    status = checked_move(DeliveryStatus.PROCESSING, DeliveryStatus.PROCESSING)
    return Recorded(delivery, status, delivery.retry_count, pause, reason, None)


def _attempt_row(result: CallResult, started_at: datetime, duration: timedelta) -> AttemptRow:
    match result:
        case Answered(status=status, body=body):
            return AttemptRow(started_at, duration, status, None, body)
        case Unanswered(error=error):
            return AttemptRow(started_at, duration, None, error, None)
        case _:
            assert_never(result)
