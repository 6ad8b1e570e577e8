"""What an attempt means: delivered, to be tried again, or over. Pure: time and chance are given.

2xx                                               Delivered
408, 425, 429, 5xx, no answer at all              Retry, until the retries are used up
a secret that is not known here                   Retry, with long pauses: an operator may add it
no name lookup to spare                           Postpone: it was not tried
3xx, other 4xx, addresses and ports we may not    GiveUp
call, URLs that cannot be called
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import assert_never

import msgspec

RETRIED_STATUSES = frozenset({408, 425, 429})
SECRET_PAUSE = timedelta(minutes=5)
LOOKUP_PAUSE = timedelta(seconds=5)


class CallError(StrEnum):
    """Why there was no answer."""

    TIMEOUT = "timeout"
    CONNECT = "connect"
    DNS = "dns"
    TLS = "tls"
    CONNECTION_LOST = "connection_lost"
    PROTOCOL = "protocol"  # an answer that is not HTTP
    UNEXPECTED = "unexpected"
    SECRET_MISSING = "secret_missing"  # noqa: S105 - the name of an error
    TOO_MANY_LOOKUPS = "too_many_lookups"  # those of other names hang
    FORBIDDEN_ADDRESS = "forbidden_address"
    FORBIDDEN_PORT = "forbidden_port"
    INVALID_URL = "invalid_url"


FINAL_ERRORS = frozenset({CallError.FORBIDDEN_ADDRESS, CallError.FORBIDDEN_PORT, CallError.INVALID_URL})
# These never reached the receiver, and say nothing about it.
NOT_ABOUT_THE_HOST = FINAL_ERRORS | {CallError.SECRET_MISSING, CallError.TOO_MANY_LOOKUPS, CallError.UNEXPECTED}


class Answered(msgspec.Struct, frozen=True, gc=False):
    status: int
    retry_after: str | None = None
    body: bytes = b""


class Unanswered(msgspec.Struct, frozen=True, gc=False):
    error: CallError


CallResult = Answered | Unanswered


class Delivered(msgspec.Struct, frozen=True, gc=False):
    pass


class Retry(msgspec.Struct, frozen=True, gc=False):
    after: timedelta
    reason: str


class Postpone(msgspec.Struct, frozen=True, gc=False):
    """It waits for its turn, as behind an open breaker: nobody was called, and no attempt is spent."""

    after: timedelta
    reason: str


class GiveUp(msgspec.Struct, frozen=True, gc=False):
    reason: str


Outcome = Delivered | Retry | Postpone | GiveUp


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    base: timedelta = timedelta(seconds=10)
    cap: timedelta = timedelta(hours=1)
    retry_after_cap: timedelta = timedelta(hours=6)


class RetryState(msgspec.Struct, frozen=True, gc=False):
    """Where a delivery stands: how many retries it has behind it, and how many it may have."""

    retry_count: int
    max_retries: int
    now: datetime
    chance: float  # 0 to 1, for the jitter


def decide(result: CallResult, state: RetryState, policy: RetryPolicy) -> Outcome:
    match result:
        case Answered():
            return _after_answer(result, state, policy)
        case Unanswered(error=error):
            return _after_error(error, state, policy)
        case _:
            assert_never(result)


def _after_answer(answer: Answered, state: RetryState, policy: RetryPolicy) -> Outcome:
    status = answer.status
    if 200 <= status < 300:
        return Delivered()
    if status in RETRIED_STATUSES or status >= 500:
        asked_for = requested_pause(answer.retry_after, state.now)
        return _again(f"http_{status}", min(asked_for, policy.retry_after_cap), state, policy)
    return GiveUp("http_410_gone" if status == 410 else f"http_{status}")


def _after_error(error: CallError, state: RetryState, policy: RetryPolicy) -> Outcome:
    if error in FINAL_ERRORS:
        return GiveUp(error)
    if error is CallError.TOO_MANY_LOOKUPS:
        return Postpone(LOOKUP_PAUSE * (1 + state.chance), error)  # those that came together do not come back together
    return _again(error, SECRET_PAUSE if error is CallError.SECRET_MISSING else timedelta(0), state, policy)


def _again(reason: str, at_least: timedelta, state: RetryState, policy: RetryPolicy) -> Outcome:
    if state.retry_count >= state.max_retries:
        return GiveUp(reason)
    return Retry(max(at_least, full_jitter(state.retry_count, state.chance, policy)), reason)


def full_jitter(retry_count: int, chance: float, policy: RetryPolicy) -> timedelta:
    """Anywhere between nothing and base, twice base, four times base … up to the cap: deliveries that failed together
    do not come back together.
    """
    doubled: int = 2 ** min(retry_count, 30)
    return min(policy.cap, policy.base * doubled) * chance


def requested_pause(retry_after: str | None, now: datetime) -> timedelta:
    """Retry-After in seconds or as a date; what cannot be read asks for nothing."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:12]), 10**9))
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return timedelta(0)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(timedelta(0), moment - now)


def shows_healthy_host(result: CallResult) -> bool | None:
    """What the attempt says about its host; None if it says nothing. A 404 comes from a host that is alive."""
    match result:
        case Answered(status=status):
            if status in {408, 425}:
                return None
            return status < 500 and status != 429
        case Unanswered(error=error):
            return None if error in NOT_ABOUT_THE_HOST else False
        case _:
            assert_never(result)


def result_label(result: CallResult) -> str:
    """For a metric: one of a few."""
    match result:
        case Answered(status=status):
            return f"{status // 100}xx"
        case Unanswered(error=error):
            return error
        case _:
            assert_never(result)
