"""A message as it came, a message to be published, and what became of it. Pure."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec


class IncomingMessage(msgspec.Struct, frozen=True, gc=False):
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


class PublishResult(StrEnum):
    CONFIRMED = "confirmed"
    RETURNED = "returned"  # no queue took it
    NACKED = "nacked"  # a queue refused it, most likely because it is full
    UNKNOWN = "unknown"  # no answer in time, or the channel was lost
    CLOSED = "closed"  # the broker closed the channel over a message: this one, if it was alone


class OutgoingMessage(msgspec.Struct, frozen=True, gc=False):
    """A struct and not a dataclass: there is one for each message, and a frozen dataclass takes five times as long."""

    exchange: str
    routing_key: str
    body: bytes
    type: str | None = None
    content_type: str | None = "application/json"
    content_encoding: str | None = None
    priority: int | None = None
    app_id: str | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    timestamp: datetime | None = None
    headers: dict[str, Any] = {}
    mandatory: bool = True
    # None: one that is fresh for every publish.
    message_id: str | None = None
    # In place of the headers, where a frame of the connection cannot hold those.
    short_headers: dict[str, Any] | None = None
