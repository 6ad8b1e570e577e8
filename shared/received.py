"""A message as it came."""

from datetime import datetime
from typing import Any

import msgspec
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from shared.properties import UNREADABLE_HEADER, UnreadableProperty


class Received(msgspec.Struct, frozen=True, gc=False):
    """`unreadable` names a property that is not what AMQP says it should be."""

    tag: int
    body: bytes
    exchange: str
    routing_key: str
    type: str | None
    content_type: str | None
    content_encoding: str | None
    priority: int | None
    message_id: str | None
    app_id: str | None
    correlation_id: str | None
    reply_to: str | None
    timestamp: datetime | None
    headers: dict[str, Any]
    unreadable: str | None
    user_id: str | None = None  # checked by RabbitMQ: the user of the connection that published it


def put_together(delivery: Basic.Deliver, header: ContentHeader, body: bytes) -> Received:
    """Of what pamqp made of its frames."""
    properties = header.properties
    headers = dict(properties.headers or {})
    unreadable = headers.get(UNREADABLE_HEADER)
    return Received(
        tag=delivery.delivery_tag or 0,
        body=body,
        exchange=delivery.exchange or "",
        routing_key=delivery.routing_key or "",
        type=properties.message_type,
        content_type=properties.content_type,
        content_encoding=properties.content_encoding,
        priority=properties.priority,
        message_id=properties.message_id,
        app_id=properties.app_id,
        correlation_id=properties.correlation_id,
        reply_to=properties.reply_to,
        timestamp=properties.timestamp,
        headers=headers,
        unreadable=str(unreadable) if isinstance(unreadable, UnreadableProperty) else None,
        user_id=properties.user_id or None,
    )
