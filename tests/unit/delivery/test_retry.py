"""What an attempt means: the whole table of statuses and errors, retries and their pauses."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.attempt.retry import (
    MISSING_SECRET_PAUSE,
    TOO_MANY_LOOKUPS_PAUSE,
    Answered,
    CallError,
    CallResult,
    Delivered,
    GiveUp,
    Postpone,
    Retry,
    RetryPolicy,
    RetryState,
    Unanswered,
    decide,
    pause_before_retry,
    requested_pause,
    result_label,
    shows_healthy_host,
)
from delivery.settings import DeliverySettings
from shared.contract.messages import Webhook

NOW = datetime(2026, 7, 10, 9, 0, tzinfo=UTC)
POLICY = RetryPolicy()
DEFAULT_RETRIES: int = Webhook.model_fields["max_retries"].default


def attempt(retry_count: int = 0, max_retries: int = 3, chance: float = 0.5) -> RetryState:
    return RetryState(retry_count, max_retries, NOW, chance)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_a_2xx_completes(status: int) -> None:
    assert decide(Answered(status), attempt(), POLICY) == Delivered()


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_these_statuses_are_retried_until_the_retries_are_used_up(status: int) -> None:
    assert isinstance(decide(Answered(status), attempt(2), POLICY), Retry)
    assert decide(Answered(status), attempt(3), POLICY) == GiveUp(f"http_{status}")


@pytest.mark.parametrize("status", [300, 301, 302, 307, 308, 400, 401, 403, 404, 409, 422, 451])
def test_other_4xx_and_redirects_fail_at_once(status: int) -> None:
    assert decide(Answered(status), attempt(), POLICY) == GiveUp(f"http_{status}")


def test_410_fails_at_once_and_says_so() -> None:
    assert decide(Answered(410), attempt(), POLICY) == GiveUp("http_410_gone")


@pytest.mark.parametrize("error", ["timeout", "connect", "dns", "tls", "connection_lost", "protocol", "unexpected"])
def test_a_call_without_an_answer_is_retried(error: str) -> None:
    assert isinstance(decide(Unanswered(CallError(error)), attempt(0), POLICY), Retry)
    assert decide(Unanswered(CallError(error)), attempt(3), POLICY) == GiveUp(error)


@pytest.mark.parametrize("error", ["forbidden_address", "forbidden_port", "invalid_url"])
def test_what_can_never_be_called_fails_at_once(error: str) -> None:
    assert decide(Unanswered(CallError(error)), attempt(), POLICY) == GiveUp(error)


def test_a_missing_secret_is_waited_for() -> None:
    outcome = decide(Unanswered(CallError.SECRET_MISSING), attempt(), POLICY)
    assert outcome == Retry(MISSING_SECRET_PAUSE, "secret_missing")


@pytest.mark.parametrize("retry_count", [0, 3])
def test_what_was_not_tried_for_want_of_a_lookup_waits_even_if_its_retries_are_used_up(retry_count: int) -> None:
    outcome = decide(Unanswered(CallError.TOO_MANY_LOOKUPS), attempt(retry_count, chance=0.5), POLICY)
    assert outcome == Postpone(TOO_MANY_LOOKUPS_PAUSE * 1.5, "too_many_lookups")


def test_three_retries_are_the_default() -> None:
    assert DEFAULT_RETRIES == 3


def test_a_delivery_without_retries_has_one_attempt() -> None:
    assert decide(Answered(503), attempt(0, max_retries=0), POLICY) == GiveUp("http_503")


def pauses(chances: Sequence[float], answer: CallResult, policy: RetryPolicy = POLICY) -> list[timedelta]:
    """The pauses between attempts that all end so, with as many retries as there are chances."""
    outcomes = [
        decide(answer, attempt(retry_count, max_retries=len(chances), chance=chance), policy)
        for retry_count, chance in enumerate(chances)
    ]
    assert isinstance(decide(answer, attempt(len(chances), max_retries=len(chances)), policy), GiveUp)
    return [outcome.after for outcome in outcomes if isinstance(outcome, Retry)]


THREE_CHANCES = st.lists(st.floats(0, 1), min_size=DEFAULT_RETRIES, max_size=DEFAULT_RETRIES)
ANY_FAILURE = st.sampled_from([
    Answered(503),
    Answered(429, "0"),
    Answered(503, "1"),
    Unanswered(CallError.CONNECT),
    Unanswered(CallError.TIMEOUT),
])  # fmt: skip


@given(THREE_CHANCES, ANY_FAILURE)
def test_by_default_a_receiver_that_is_down_for_five_minutes_loses_nothing(
    chances: list[float], failure: CallResult
) -> None:
    """The last attempt comes more than five minutes after the first, whatever the jitter and the receiver say."""
    assert sum(pauses(chances, failure), timedelta()) > timedelta(minutes=5)


@given(THREE_CHANCES)
def test_by_default_the_first_retry_comes_within_half_a_minute_and_the_last_within_eleven(chances: list[float]) -> None:
    first, *others = pauses(chances, Unanswered(CallError.CONNECT))
    assert timedelta(seconds=15) <= first <= timedelta(seconds=30)
    assert sum(others, first) <= timedelta(minutes=11)


def test_the_defaults_of_the_settings_are_those_of_the_policy() -> None:
    fields = DeliverySettings.model_fields
    assert timedelta(seconds=fields["retry_base_seconds"].default) == POLICY.base
    assert timedelta(seconds=fields["retry_cap_seconds"].default) == POLICY.cap
    assert timedelta(seconds=fields["retry_after_cap_seconds"].default) == POLICY.retry_after_cap


@given(st.integers(0, 40), st.floats(0, 1))
def test_half_of_a_pause_is_random_and_the_pause_has_a_cap(retry_count: int, chance: float) -> None:
    """Half: what failed together is spread, and yet no retry is wasted on a receiver that has only just failed."""
    longest = min(POLICY.cap, POLICY.base * 4 ** min(retry_count, 10))
    assert longest / 2 <= pause_before_retry(retry_count, chance, POLICY) <= longest
    assert pause_before_retry(retry_count, 0.0, POLICY) == longest / 2
    assert pause_before_retry(retry_count, 1.0, POLICY) == longest


@pytest.mark.parametrize(
    ("header", "pause"),
    [
        ("120", timedelta(seconds=120)),
        (" 7 ", timedelta(seconds=7)),
        ("0", timedelta(0)),
        ("Fri, 10 Jul 2026 09:02:00 GMT", timedelta(minutes=2)),
        ("Friday, 10-Jul-26 09:02:00 GMT", timedelta(minutes=2)),
        ("Fri, 10 Jul 2026 08:00:00 GMT", timedelta(0)),
        (None, timedelta(0)),
        ("", timedelta(0)),
        ("soon", timedelta(0)),
        ("-5", timedelta(0)),
        ("1.5", timedelta(0)),
        ("²", timedelta(0)),
        ("Fri, 99 Jul 2026 09:02:00 GMT", timedelta(0)),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, pause: timedelta) -> None:
    assert requested_pause(header, NOW) == pause


@given(st.text(max_size=40))
def test_no_retry_after_breaks_the_reading(header: str) -> None:
    assert requested_pause(header, NOW) >= timedelta(0)


def test_retry_after_is_honoured_within_its_cap() -> None:
    def pause(header: str) -> timedelta:
        outcome = decide(Answered(503, header), attempt(chance=0.0), POLICY)
        assert isinstance(outcome, Retry)
        return outcome.after

    assert pause("90") == timedelta(seconds=90)
    assert pause("1") == POLICY.base / 2, "a header makes no pause shorter"
    assert pause("9" * 30) == POLICY.retry_after_cap


@pytest.mark.parametrize(
    ("result", "healthy"),
    [
        (Answered(200), True),
        (Answered(404), True),
        (Answered(410), True),
        (Answered(302), True),
        (Answered(500), False),
        (Answered(503), False),
        (Answered(429), False),
        (Answered(408), None),
        (Unanswered(CallError.TIMEOUT), False),
        (Unanswered(CallError.DNS), False),
        (Unanswered(CallError.FORBIDDEN_ADDRESS), None),
        (Unanswered(CallError.SECRET_MISSING), None),
        (Unanswered(CallError.TOO_MANY_LOOKUPS), None),
    ],
)
def test_what_an_attempt_says_about_its_host(result: CallResult, healthy: bool | None) -> None:
    assert shows_healthy_host(result) is healthy


def test_labels_come_from_a_closed_list() -> None:
    labels = {result_label(Answered(status)) for status in range(100, 600)}
    labels |= {result_label(Unanswered(error)) for error in CallError}
    assert len(labels) == 5 + len(CallError)
