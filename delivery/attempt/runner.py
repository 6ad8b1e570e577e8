"""One attempt of a claimed delivery: prepare the request (no I/O), call the webhook, decide what is recorded."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

import msgspec

from delivery.attempt.retry import (
    Answered,
    CallError,
    CallResult,
    Delivered,
    GiveUp,
    Outcome,
    Postpone,
    Retry,
    RetryPolicy,
    RetryState,
    Unanswered,
    decide,
    result_label,
    shows_healthy_host,
)
from delivery.attempt.signing import Secrets
from delivery.dispatch.local_queue import LeasedDelivery
from delivery.http.caller import Caller
from delivery.http.request import prepare
from delivery.metrics import Metrics
from delivery.model import AttemptRow, Delivery, DeliveryStatus, DeliveryUpdate, checked_move, given_back
from shared.contract.address_rules import AddressRules
from shared.contract.fields import trace_headers
from shared.runtime.logs import get_log


class FinishedCall(msgspec.Struct, frozen=True, gc=False):
    """What one call leads to: the update to record, and what the call says about its host."""

    update: DeliveryUpdate
    seconds: float
    host_is_healthy: bool | None  # None: the call says nothing about the host


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRunner:
    """Calls the webhooks of leased deliveries, one attempt each."""

    caller: Caller
    secrets: Secrets
    rules: AddressRules
    retry_policy: RetryPolicy
    metrics: Metrics
    lease_margin: float
    chance: Callable[[], float] = random.random

    async def run(self, leased: LeasedDelivery) -> FinishedCall | None:
        """Call the webhook of a leased delivery. Return None without a call if the lease may end before the call."""
        delivery, started = leased.delivery, time.monotonic()
        if started - leased.leased_at > self.lease_margin:
            # The process stood still for so long that the lease may end during the call: another replica calls.
            self.metrics.leases_lost.inc()
            get_log().warning(
                "lease_lost",
                idempotency_key=delivery.idempotency_key,
                id=delivery.job_id,
                dropped="before the call",
                **trace_headers(delivery.traceparent),
            )
            return None
        # Postgres' clock at the claim, plus the time since then by this process's clock.
        started_at = delivery.claimed_at + timedelta(seconds=started - leased.leased_at)
        result = await self._call(delivery, started_at)
        seconds = time.monotonic() - started
        took = timedelta(seconds=seconds)
        state = RetryState(delivery.retry_count, delivery.max_retries, started_at + took, self.chance())
        outcome = decide(result, state, self.retry_policy)
        self.metrics.attempts.labels(result_label(result)).inc()
        self.metrics.seconds.observe(seconds)
        update = update_after_call(delivery, result, outcome, started_at, took)
        return FinishedCall(update, seconds, shows_healthy_host(result))

    async def _call(self, delivery: Delivery, now: datetime) -> CallResult:
        try:
            signers = self.secrets.signers(delivery.secret) if delivery.secret is not None else ()
            request = prepare(delivery, signers, self.rules, now)
            return request if isinstance(request, Unanswered) else await self.caller.call(request)
        except Exception as error:  # noqa: BLE001 - the boundary of one attempt: it spends a retry; other calls go on
            get_log().error(
                "call_failed_unexpectedly",
                idempotency_key=delivery.idempotency_key,
                error_type=type(error).__name__,
            )
            return Unanswered(CallError.UNEXPECTED)


def update_after_call(
    delivery: Delivery, result: CallResult, outcome: Outcome, started_at: datetime, duration: timedelta
) -> DeliveryUpdate:
    """Build what is recorded after a call. A claimed delivery is PROCESSING; `checked_move` guards its next status."""
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


def _attempt_row(result: CallResult, started_at: datetime, duration: timedelta) -> AttemptRow:
    match result:
        case Answered(status=status, body=body):
            return AttemptRow(started_at, duration, status, None, body)
        case Unanswered(error=error, detail=detail):
            return AttemptRow(started_at, duration, None, error, detail.encode() if detail else None)
        case _:
            assert_never(result)
