"""The AsyncAPI document says which AMQP properties and headers a message has: a command that is built as it says is
answered, and what comes back has what it says.
"""

import asyncio
import json
from typing import Any

import aio_pika
import pytest
from aio_pika.abc import AbstractIncomingMessage

from tests.support.application import Application, an_application
from tests.support.builders import in_seconds
from tests.support.eventually import PATIENCE, eventually
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site
from tools.contract.asyncapi import KEYS, asyncapi

MESSAGES = asyncapi()["components"]["messages"]
# Of AMQP 0-9-1, beside `headers`.
PROPERTIES = {
    "app_id", "cluster_id", "content_encoding", "content_type", "correlation_id", "delivery_mode", "expiration",
    "message_id", "priority", "reply_to", "timestamp", "type", "user_id",
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_a_property_is_one_of_amqp_and_no_header_has_its_name(name: str) -> None:
    message = MESSAGES[name]
    headers = message.get("headers", {"properties": {}})["properties"]
    assert message["x-amqp-properties"].keys() <= PROPERTIES
    assert not headers.keys() & PROPERTIES
    assert message["x-amqp-properties"]["type"]["const"] == message["bindings"]["amqp"]["messageType"] == name


def check(name: str, message: AbstractIncomingMessage) -> None:
    described = MESSAGES[name]
    assert all(getattr(message, name) for name in described["x-amqp-properties"])
    assert message.headers.keys() <= described.get("headers", {"properties": {}})["properties"].keys()


async def answer_to(command: dict[str, Any], name: str, app: Application) -> AbstractIncomingMessage:
    replies = await app.channel.declare_queue(exclusive=True)
    values = {
        "type": name,
        "correlation_id": f"the one of {name}",
        "reply_to": replies.name,
        "user_id": None,
        "app_id": "my-app",
    }
    properties = {each: values[each] for each in MESSAGES[name]["x-amqp-properties"]}
    message = aio_pika.Message(json.dumps(command).encode())
    for each, value in properties.items():
        setattr(message, each, value)
    await app.commands.publish(message, KEYS[name])
    async with asyncio.timeout(PATIENCE), replies.iterator(no_ack=True) as arriving:
        return await anext(arriving)


async def test_a_command_as_the_document_has_it_is_answered_and_its_event_is_as_described(site: Site) -> None:
    due: list[AbstractIncomingMessage] = []
    async with an_application(site, listen_to=None) as app, running_consumer(site), running_producer(site):
        queue = await app.channel.declare_queue(exclusive=True)
        await queue.bind(app.events, "due.*.#")

        async def hear(message: AbstractIncomingMessage) -> None:
            due.append(message)

        await queue.consume(hear, no_ack=True)
        for name, command in (
            ("ScheduleRequest", {"id": "job", "cron": "@yearly"}),
            ("SchedulePause", {"id": "job"}),
            ("ScheduleResume", {"id": "job"}),
            ("ScheduleTrigger", {"id": "job", "trigger_id": "once"}),
            ("ScheduleQuery", {"id": "job"}),
            ("ScheduleBulk", {"id": "some", "action": "pause", "selector": {"topic": "none"}}),
            ("ScheduleCancel", {"id": "job"}),
            ("ScheduleRequest", {"id": "soon", "at": in_seconds(0.2)}),
        ):
            reply = await answer_to(command, name, app)
            check("ScheduleReply", reply)
            assert reply.correlation_id == f"the one of {name}"
            assert json.loads(reply.body)["outcome"] != "rejected"

        async def soon_rang() -> bool:
            return any(json.loads(message.body)["id"] == "soon" for message in due)

        await eventually(soon_rang)
        for message in due:
            check("ScheduleDue", message)
