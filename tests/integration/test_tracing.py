"""A request's trace context travels with what comes of it."""

from typing import Any

from tests.support.application import Application
from tests.support.builders import a_request, in_seconds
from tests.support.eventually import eventually
from tests.support.job_rows import read_job
from tests.support.receiver import a_receiver
from tests.support.services import running_consumer, running_delivery, running_producer
from tests.support.stores import Site

FIRST = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SECOND = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


async def test_the_event_carries_the_trace_of_its_request(site: Site, app: Application) -> None:
    async with running_consumer(site), running_producer(site):
        await app.ask(a_request(id="traced", at=in_seconds(-1)), headers={"traceparent": FIRST})
        await app.ask(a_request(id="broken", at=in_seconds(-1)), headers={"traceparent": FIRST[:-1]})
        await app.ask(a_request(id="plain", at=in_seconds(-1)))
        events = {event.content["id"]: event.raw.headers for event in await app.hears(3)}
    assert events["traced"]["traceparent"] == FIRST
    assert "traceparent" not in events["broken"]
    assert "traceparent" not in events["plain"]


async def test_a_reschedule_brings_its_own_trace_and_a_cancel_leaves_it(
    site: Site, app: Application, database: Any
) -> None:
    async with running_consumer(site):
        await app.ask(a_request(), headers={"traceparent": FIRST})
        await app.ask(a_request(revision=2), headers={"traceparent": SECOND})
        assert (await read_job(database, "job-1"))["traceparent"] == SECOND
        await app.cancel("job-1")
        assert (await read_job(database, "job-1"))["traceparent"] == SECOND


async def test_the_webhook_call_and_its_outcome_carry_the_trace_too(site: Site, app: Application) -> None:
    async with a_receiver() as receiver, running_consumer(site), running_producer(site), running_delivery(site):
        await app.binds(f"{site.prefix}outcomes", "delivery.#")
        hook = {"url": receiver.url}
        await app.ask(a_request(at=in_seconds(-1), webhook=hook), headers={"traceparent": FIRST})
        [call] = await receiver.called(1)
        assert call.headers["traceparent"] == FIRST
        outcomes = await app.channel.get_queue(f"{site.prefix}outcomes")

        async def announced() -> Any:
            return await outcomes.get(no_ack=True, fail=False)

        assert (await eventually(announced)).headers["traceparent"] == FIRST
        await outcomes.delete(if_empty=False)
