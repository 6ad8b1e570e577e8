"""A message as it came."""

from datetime import datetime
from typing import Any

import msgspec


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
