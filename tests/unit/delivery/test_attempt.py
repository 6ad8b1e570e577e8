"""Before a call: whether the lease of the delivery is still there to be used."""

import time
from typing import cast

from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from delivery.attempt.retry import Answered, RetryPolicy
from delivery.attempt.runner import AttemptRunner
from delivery.attempt.signing import Secrets
from delivery.dispatch.local_queue import LeasedDelivery
from delivery.http.caller import Caller
from delivery.http.request import Request
from delivery.metrics import Metrics
from delivery.model import DeliveryStatus
from shared.contract.address_rules import AddressRules
from tests.support.builders import a_delivery

MARGIN = 30.0


class CountingCaller:
    """Every receiver answers 200."""

    def __init__(self) -> None:
        self.calls: list[Request] = []

    async def call(self, request: Request) -> Answered:
        self.calls.append(request)
        return Answered(200)


def runner(caller: CountingCaller) -> AttemptRunner:
    return AttemptRunner(
        caller=cast("Caller", caller),
        secrets=Secrets.load(None, None),
        rules=AddressRules(),
        retry_policy=RetryPolicy(),
        metrics=Metrics(CollectorRegistry()),
        lease_margin=MARGIN,
    )


def leased_for(seconds: float) -> LeasedDelivery:
    since = time.monotonic() - seconds
    return LeasedDelivery(a_delivery(), since, since)


async def test_a_lease_that_may_end_during_the_call_is_not_used() -> None:
    """The process stood still for longer than the margin: what is left of the lease is shorter than the call's own
    timeout, and another replica may take the delivery over while it is called.
    """
    caller = CountingCaller()
    with capture_logs() as lines:
        assert await runner(caller).run(leased_for(MARGIN + 1)) is None
    assert caller.calls == []
    assert [line["event"] for line in lines] == ["lease_lost"]


async def test_a_lease_that_lasts_for_all_of_the_call_is_used() -> None:
    caller = CountingCaller()
    attempted = await runner(caller).run(leased_for(MARGIN / 2))
    assert attempted is not None
    assert attempted.update.status is DeliveryStatus.COMPLETED
    assert len(caller.calls) == 1
