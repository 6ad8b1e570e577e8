"""What the services really publish is what the schemas say."""

from typing import Any

from jsonschema_rs import Draft202012Validator

from shared.contract.messages import DeliveryCompleted, DeliveryFailed, ScheduleDue, ScheduleReply
from tests.support.application import an_application
from tests.support.builders import in_seconds
from tests.support.receiver import a_receiver, answering
from tests.support.services import running_consumer, running_delivery, running_producer
from tests.support.stores import Site
from tools.contract.schemas import MODELS, schema_of

MODEL_OF = {model.__name__: model for model in MODELS}


def check(kind: str, content: dict[str, Any]) -> None:
    schema = schema_of(MODEL_OF[kind])
    Draft202012Validator(schema, validate_formats=True).validate(content)
    unknown = content.keys() - schema["properties"].keys()
    assert not unknown, f"{kind} has fields that the contract does not name"


async def test_replies_and_events_are_what_the_schemas_say(site: Site) -> None:
    async with (
        an_application(site, listen_to="#") as app,
        a_receiver() as good,
        a_receiver(answering(404)) as bad,
        running_consumer(site),
        running_producer(site),
        running_delivery(site),
    ):
        replies = [
            await app.request({"id": "plain", "at": in_seconds(0.2), "payload": {"any": [1, None, "x"]}}),
            await app.request({"id": "good", "at": in_seconds(0.2), "webhook": {"url": good.url}}),
            await app.request({"id": "bad", "at": in_seconds(0.2), "topic": "a.b", "webhook": {"url": bad.url}}),
            await app.request({"id": "rule", "cron": "@yearly"}),
            await app.request({"id": "rule", "cron": "@yearly"}),
            await app.request(
                {"id": "rule", "rrule": "FREQ=YEARLY", "start_at": "2090-01-01T00:00:00Z", "revision": 2}
            ),
            await app.query("rule"),
            await app.cancel("rule"),
            await app.query("no such job"),
            await app.request({"id": "wrong", "at": "tomorrow"}),
            await app.ask(b"not json"),
        ]
        heard = await app.hears(5)
    for reply in replies:
        check(ScheduleReply.__name__, reply)
    assert {reply["outcome"] for reply in replies} == {
        "accepted", "duplicate", "rescheduled", "cancelled", "rejected", "found", "unknown",
    }  # fmt: skip
    for event in heard:
        check(event.raw.type or "", event.content)
    assert sorted(event.raw.type or "" for event in heard) == sorted(
        [ScheduleDue.__name__] * 3 + [DeliveryCompleted.__name__, DeliveryFailed.__name__]
    )
