"""`decide` says what the result of a call means for its delivery. Pure: time and chance are arguments.

| result of the call                                     | outcome                                                   |
| ------------------------------------------------------ | --------------------------------------------------------- |
| 2xx                                                    | Delivered                                                 |
| 408, 425, 429, 5xx, no answer                          | Retry; GiveUp if all retries are used up                  |
| the name of the secret is unknown                      | Retry with long pauses, because an operator may add it    |
| too many name lookups hang                             | Postpone, because there was no call                       |
| 3xx, other 4xx, a forbidden address or port, a bad URL | GiveUp                                                    |
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import assert_never

import msgspec

RETRIED_STATUSES = frozenset({408, 425, 429})
# The pause grows by this factor with each retry.
PAUSE_GROWTH = 4
# The shortest pause before the next attempt.
MISSING_SECRET_PAUSE = timedelta(minutes=5)
TOO_MANY_LOOKUPS_PAUSE = timedelta(seconds=5)


class CallError(StrEnum):
    """Why a call has no answer. It is the reason in tables, events, logs and metrics."""

    TIMEOUT = "timeout"
    CONNECT = "connect"
    DNS = "dns"
    TLS = "tls"
    CONNECTION_LOST = "connection_lost"
    PROTOCOL = "protocol"  # an answer that is not HTTP
    UNEXPECTED = "unexpected"
    SECRET_MISSING = "secret_missing"  # noqa: S105 - the name of an error
    TOO_MANY_LOOKUPS = "too_many_lookups"  # the lookups of other names hang
    FORBIDDEN_ADDRESS = "forbidden_address"
    FORBIDDEN_PORT = "forbidden_port"
    INVALID_URL = "invalid_url"


# Another call would have the same error.
FINAL_ERRORS = frozenset({CallError.FORBIDDEN_ADDRESS, CallError.FORBIDDEN_PORT, CallError.INVALID_URL})
# Calls with these errors never reached the receiver, so they say nothing about its host.
NOT_ABOUT_THE_HOST = FINAL_ERRORS | {CallError.SECRET_MISSING, CallError.TOO_MANY_LOOKUPS, CallError.UNEXPECTED}


class Answered(msgspec.Struct, frozen=True, gc=False):
    """The receiver has answered: its status, its Retry-After header and the start of its body."""

    status: int
    retry_after: str | None = None
    body: bytes = b""


class Unanswered(msgspec.Struct, frozen=True, gc=False):
    """The receiver has not answered, or was not called. The detail, if any, is for operators: which address it was."""

    error: CallError
    detail: str | None = None


CallResult = Answered | Unanswered


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """The delivery has succeeded and ends."""


class Retry(msgspec.Struct, frozen=True, gc=False):
    """The attempt has failed, and the delivery is called again after a pause."""

    after: timedelta
    reason: str


class Postpone(msgspec.Struct, frozen=True, gc=False):
    """There was no call. The delivery is given back and due again after a pause; no attempt is spent."""

    after: timedelta
    reason: str


class GiveUp(msgspec.Struct, frozen=True, gc=False):
    """The delivery has failed and ends."""

    reason: str


Outcome = Delivered | Retry | Postpone | GiveUp


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The pauses between attempts, from the settings RETRY_…

    With the defaults, three retries span 315 s at the least: a receiver that is down for five minutes loses nothing.
    """

    base: timedelta = timedelta(seconds=30)
    cap: timedelta = timedelta(hours=1)
    retry_after_cap: timedelta = timedelta(hours=6)


class RetryState(msgspec.Struct, frozen=True, gc=False):
    """What `decide` needs to know about a delivery: how many retries it has had, and how many it may have."""

    retry_count: int
    max_retries: int
    now: datetime
    chance: float  # 0 to 1, for the jitter


def decide(result: CallResult, state: RetryState, policy: RetryPolicy) -> Outcome:
    """Decide what the result of a call means for its delivery."""
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
        requested = requested_pause(answer.retry_after, state.now)
        return _retry_or_give_up(f"http_{status}", min(requested, policy.retry_after_cap), state, policy)
    return GiveUp("http_410_gone" if status == 410 else f"http_{status}")


def _after_error(error: CallError, state: RetryState, policy: RetryPolicy) -> Outcome:
    if error in FINAL_ERRORS:
        return GiveUp(error)
    if error is CallError.TOO_MANY_LOOKUPS:
        # With jitter: deliveries that were postponed together must not all be due at one moment.
        return Postpone(TOO_MANY_LOOKUPS_PAUSE * (1 + state.chance), error)
    return _retry_or_give_up(
        error, MISSING_SECRET_PAUSE if error is CallError.SECRET_MISSING else timedelta(0), state, policy
    )


def _retry_or_give_up(reason: str, at_least: timedelta, state: RetryState, policy: RetryPolicy) -> Outcome:
    if state.retry_count >= state.max_retries:
        return GiveUp(reason)
    return Retry(max(at_least, pause_before_retry(state.retry_count, state.chance, policy)), reason)


def pause_before_retry(retry_count: int, chance: float, policy: RetryPolicy) -> timedelta:
    """Return a random pause of at least half, at most all of base · 4ⁿ or the cap, where n is the retries so far.

    The random half: deliveries that failed together are not all called again at one moment. The fixed half: retries
    are not used up while the receiver is still down.
    """
    growth: int = PAUSE_GROWTH ** min(retry_count, 12)
    longest = min(policy.cap, policy.base * growth)
    return longest * (1 + chance) / 2


def requested_pause(retry_after: str | None, now: datetime) -> timedelta:
    """Read a Retry-After header, in seconds or as a date. A value that cannot be read requests no pause."""
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
    """Tell whether the result shows that the host works; None if it says nothing about the host. A 404, for example,
    comes from a host that works.
    """
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
    """Return the label of the metric `delivery_attempts`, from a closed list."""
    match result:
        case Answered(status=status):
            return f"{status // 100}xx"
        case Unanswered(error=error):
            return error
        case _:
            assert_never(result)
