"""A message to be published, and what became of it. Pure."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    CONFIRMED = "confirmed"
    RETURNED = "returned"  # no queue took it
    NACKED = "nacked"  # a queue refused it, most likely because it is full
    UNKNOWN = "unknown"  # no answer in time, or the channel was lost
    CLOSED = "closed"  # the broker closed the channel over a message: this one, if it was alone


@dataclass(frozen=True, slots=True)
class Outgoing:
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
    headers: dict[str, Any] = field(default_factory=dict)
    mandatory: bool = True
