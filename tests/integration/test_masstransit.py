"""MassTransit's scheduler contract on real stores: messages, cancels and recurring messages, and who may reach what."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.contract.names import MASSTRANSIT_TOPIC
from shared.postgres.delay_exchanges import open_exchanges
from tests.support.application import Application
from tests.support.builders import a_request, in_seconds
from tests.support.delayed import DelayedSender, a_delayed_sender, properties
from tests.support.eventually import eventually
from tests.support.masstransit_envelopes import CONTENT_TYPE, an_envelope
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site


async def send(sender: DelayedSender, envelope: dict[str, Any] | bytes, **props: Any) -> None:
    header = properties(**{"content_type": CONTENT_TYPE, "delivery_mode": 2, **props})
    body = envelope if isinstance(envelope, bytes) else json.dumps(envelope).encode()
    await sender.raw.send(sender.site.names.masstransit, b"", header, body)


def in_time(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


async def test_a_scheduled_message_reaches_its_open_destination_and_a_cancelled_one_does_not(
    site: Site, app: Application, database: Any
) -> None:
    token, moment = "0c3a0000-ac19-0242-aaaa-08dd1a2b3c4d", in_time(1)
    async with a_delayed_sender(site) as sender, running_consumer(site), running_producer(site):
        await open_exchanges(database, [sender.exchange])
        to: dict[str, Any] = {"destination": f"rabbitmq://broker.example/{sender.exchange}"}
        await send(sender, an_envelope("schedule_message", scheduledTime=in_time(3600), correlationId=token, **to))
        await send(sender, an_envelope("cancel_scheduled_message", tokenId=token))
        await send(sender, b"{")
        await send(sender, an_envelope("schedule_message", destination="queue:closed"))
        await send(sender, an_envelope("schedule_message", scheduledTime=moment, **to), message_id="m")
        [heard] = await sender.hears(1)
        assert in_time(0) >= moment
        reasons = sorted(str(each.headers["duebell-reason"]) for each in await app.parked(2))
    assert reasons[0] == "body: must be a JSON object"
    assert reasons[1].startswith("message.destination: the exchange 'closed' has no open delay exchange")
    envelope = json.loads(heard.body)
    assert envelope["message"] == an_envelope("schedule_message")["message"]["payload"]
    assert envelope["messageType"] == ["urn:message:Shop.Contracts:SendNotification"]
    assert heard.header == properties(content_type=CONTENT_TYPE, delivery_mode=2, message_id="m")
    told = await database.fetch("select what from history where job_id = $1 order by at", token)
    assert [row["what"] for row in told] == ["accepted", "cancelled"]
    assert await database.fetchval("select count(*) from delay_exchanges where exchange = 'closed'") == 0


async def test_a_recurring_message_comes_again_and_again_until_it_is_cancelled(
    site: Site, app: Application, database: Any
) -> None:
    name = "masstransit:Shop:PollExternalSystem"
    async with a_delayed_sender(site) as sender, running_consumer(site), running_producer(site):
        await open_exchanges(database, [sender.exchange])
        rule = {"cronExpression": "* * * * * ?", "startTime": in_time(0)}
        asked = an_envelope("schedule_recurring_message", schedule=rule, destination=f"queue:{sender.exchange}")
        await send(sender, {**asked, "sentTime": in_time(0)})
        heard = await sender.hears(2)
        assert len({json.loads(each.body)["messageId"] for each in heard}) == len(heard)
        assert json.loads(heard[0].body)["messageType"] == ["urn:message:Shop.Contracts:PollExternalSystem"]
        bad = an_envelope("schedule_recurring_message", schedule={**rule, "timeZoneId": "W. Europe Standard Time"})
        await send(sender, bad)
        [parked] = await app.parked(1)
        assert str(parked.headers["duebell-reason"]).startswith("message.schedule.timeZoneId: ")
        forged = await app.trigger(name, "now", payload={"exchange": "any", "envelope": {}})
        assert forged["errors"] == ["payload: a recurring message of MassTransit is sent with its own"]
        assert (await app.trigger(name, "now"))["outcome"] == "triggered"
        await send(sender, {**an_envelope("cancel_scheduled_recurring_message"), "sentTime": in_time(0)})

        async def cancelled() -> bool:
            status = await database.fetchval("select status from jobs where id = $1", name)
            assert status == "cancelled"
            return True

        await eventually(cancelled)
        reply = await app.request(a_request(id="x", at=in_seconds(1), topic=MASSTRANSIT_TOPIC))
    assert reply["outcome"] == "rejected", "no other request has the topic of recurring messages"
    assert reply["errors"] == [f"topic: {MASSTRANSIT_TOPIC} is for the recurring messages of MassTransit"]
