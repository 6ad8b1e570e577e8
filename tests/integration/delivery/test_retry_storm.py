"""A host that was down for a while and has many deliveries waiting: when it is back, it is not run over."""

from typing import Any

from tests.support.application import Application
from tests.support.delivery_rows import wait_for_deliveries
from tests.support.due_events import a_due, publish_due
from tests.support.receiver import a_receiver, answering
from tests.support.services import running_delivery
from tests.support.stores import Site

MAX_CALLS = 4
WAITING = 200


async def test_a_host_that_comes_back_gets_no_more_at_a_time_than_it_ever_did(
    site: Site, app: Application, database: Any
) -> None:
    limits = {
        "max_in_flight_per_host": MAX_CALLS,
        "breaker_first_pause_seconds": 0.05,
        "breaker_longest_pause_seconds": 0.2,
    }
    async with a_receiver(answering(503)) as receiver, running_delivery(site, **limits):
        events = [a_due(f"job-{n}", receiver.url, webhook={"max_retries": 20}) for n in range(WAITING)]
        await publish_due(app, *events)
        await receiver.called(60)
        assert receiver.most_at_once <= MAX_CALLS
        while_down = len(receiver.calls)

        receiver.behaviour, receiver.most_at_once = answering(200), 0
        await wait_for_deliveries(database, WAITING, within=60)
        assert receiver.most_at_once <= MAX_CALLS
        assert len(receiver.calls) - while_down <= WAITING + MAX_CALLS, "one call each, and those that were under way"
        assert len(receiver.effects) == WAITING
