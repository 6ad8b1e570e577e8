"""One attempt: prepare (no I/O), call, decide. Its result says what is to be written about it."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from delivery.attempt.retry import (
    CallError,
    CallResult,
    RetryPolicy,
    RetryState,
    Unanswered,
    decide,
    host_is_well,
    result_label,
)
from delivery.attempt.signing import Secrets
from delivery.dispatch.local_queue import LeasedDelivery
from delivery.http.address_guard import AddressRules
from delivery.http.caller import Caller
from delivery.http.request import prepare
from delivery.metrics import Metrics
from delivery.model import Delivery
from delivery.results.update import DeliveryUpdate, update_after_call
from shared.contract.fields import trace_headers
from shared.runtime.logs import get_log


class AttemptResult(msgspec.Struct, frozen=True, gc=False):
    update: DeliveryUpdate
    seconds: float
    host_is_well: bool | None  # None: the attempt says nothing about it


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempter:
    caller: Caller
    secrets: Secrets
    rules: AddressRules
    retry_policy: RetryPolicy
    metrics: Metrics
    lease_margin: float
    chance: Callable[[], float] = random.random

    async def attempt(self, leased: LeasedDelivery) -> AttemptResult | None:
        """None without a call if the lease may end before the call would."""
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
        started_at = delivery.claimed_at + timedelta(seconds=started - leased.leased_at)
        result = await self._call(delivery, started_at)
        seconds = time.monotonic() - started
        took = timedelta(seconds=seconds)
        state = RetryState(delivery.retry_count, delivery.max_retries, started_at + took, self.chance())
        outcome = decide(result, state, self.retry_policy)
        self.metrics.attempts.labels(result_label(result)).inc()
        self.metrics.seconds.observe(seconds)
        update = update_after_call(delivery, result, outcome, started_at, took)
        return AttemptResult(update, seconds, host_is_well(result))

    async def _call(self, delivery: Delivery, now: datetime) -> CallResult:
        try:
            signers = self.secrets.signers(delivery.secret) if delivery.secret is not None else ()
            request = prepare(delivery, signers, self.rules, now)
            return request if isinstance(request, Unanswered) else await self.caller.call(request)
        except Exception as error:  # noqa: BLE001 - the boundary of one attempt: it spends a try, and harms nobody else
            get_log().error(
                "call_failed_unexpectedly",
                idempotency_key=delivery.idempotency_key,
                error_type=type(error).__name__,
            )
            return Unanswered(CallError.UNEXPECTED)
