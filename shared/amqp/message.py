"""Messages that arrive, messages to publish, and the results of publishing. Pure."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec


class IncomingMessage(msgspec.Struct, frozen=True, gc=False):
    """A message as the broker delivered it. `unreadable` says what is wrong with a property that is not valid AMQP."""

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
    user_id: str | None = None  # RabbitMQ has checked it: the user of the publishing connection
    # As they arrived: flags and properties, and the routing key, which need not be UTF-8.
    header: bytes = b""
    routing_key_bytes: bytes = b""
    redelivered: bool = False  # it was delivered before, and RabbitMQ has added headers that count its deliveries


class PublishResult(StrEnum):
    """Says what the broker answered to one published message."""

    CONFIRMED = "confirmed"
    RETURNED = "returned"  # no queue took it, though one has to
    UNROUTED = "unrouted"  # no queue is bound for it, which is known for certain, and may be so
    NACKED = "nacked"  # a queue refused it, most likely because it is full
    UNKNOWN = "unknown"  # no answer in time, or the channel was lost
    CLOSED = "closed"  # the broker closed the channel or the connection over a message: this one, if it was alone
    NO_TARGET = "no_target"  # not sent: its exchange is not there, or this user may not publish to it
    TOO_LARGE = "too_large"  # not sent: its properties do not fit into a frame of the connection


# Results with which the publisher has done its work: nothing is to be published again.
PUBLISHED = frozenset({PublishResult.CONFIRMED, PublishResult.UNROUTED})


# Results after which an event is published again.
NOT_PUBLISHED = (PublishResult.RETURNED, PublishResult.NACKED, PublishResult.UNKNOWN, PublishResult.CLOSED)


class OutgoingMessage(msgspec.Struct, frozen=True, gc=False):
    """A message to publish. It is a struct because creating a frozen dataclass takes five times as long."""

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
    # Applications decide whether a queue is bound for it. If none is, its result is UNROUTED, not RETURNED.
    may_be_unrouted: bool = False
    # None: every publish uses a new one.
    message_id: str | None = None
    # They replace `headers` if a frame of the connection has no room for those.
    short_headers: dict[str, Any] | None = None


class RawMessage(msgspec.Struct, frozen=True, gc=False):
    """A message to publish with the properties that it came with, byte for byte. A queue has to take it."""

    exchange: str
    routing_key: bytes
    header: bytes  # flags and properties
    body: bytes


def copy_to(
    message: IncomingMessage,
    exchange: str,
    routing_key: str,
    headers: dict[str, Any],
    short_headers: dict[str, Any] | None = None,
) -> OutgoingMessage:
    """Return the same message with another exchange, routing key and headers."""
    return OutgoingMessage(
        exchange=exchange,
        routing_key=routing_key,
        body=message.body,
        type=message.type,
        content_type=message.content_type,
        content_encoding=message.content_encoding,
        priority=message.priority,
        app_id=message.app_id,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        timestamp=message.timestamp,
        headers=headers,
        short_headers=short_headers,
    )
