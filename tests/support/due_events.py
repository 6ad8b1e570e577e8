"""ScheduleDue events as the producer publishes them, for tests that begin with the queue of the delivery service."""

import json
from datetime import UTC, datetime
from typing import Any

import aio_pika

from shared.amqp.message import IncomingMessage
from shared.contract.fields import format_instant, idempotency_key
from tests.support.application import Application


def a_due(job_id: str, url: str, **overrides: Any) -> dict[str, Any]:
    """Make an event. `overrides` replaces its fields; `webhook` is merged into the webhook's fields."""
    due_at = overrides.pop("due_at", datetime.now(UTC))
    topic = overrides.pop("topic", "hooks")
    webhook = {"url": url, **overrides.pop("webhook", {})}
    return {
        "id": job_id,
        "topic": topic,
        "sequence": 1,
        "due_at": format_instant(due_at),
        "fired_at": format_instant(datetime.now(UTC)),
        "payload": {"n": 1},
        "idempotency_key": idempotency_key(job_id, due_at, topic),
        "webhook": webhook,
        **overrides,
    }


async def publish_due(app: Application, *events: dict[str, Any] | bytes, type: str | None = "ScheduleDue") -> None:  # noqa: A002
    for event in events:
        topic = "hooks" if isinstance(event, bytes) else event["topic"]
        body = event if isinstance(event, bytes) else json.dumps(event).encode()
        await app.events.publish(
            aio_pika.Message(body, type=type, delivery_mode=aio_pika.DeliveryMode.PERSISTENT), f"due.webhook.{topic}"
        )


def received(tag: int, due: dict[str, Any]) -> IncomingMessage:
    """The event as delivery receives it."""
    nothing = dict.fromkeys(IncomingMessage.__struct_fields__)
    return IncomingMessage(**{**nothing, "tag": tag, "body": json.dumps(due).encode(), "headers": {}})  # type: ignore[arg-type]
