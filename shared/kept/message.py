"""A message that a queue keeps for people: what it is, and how it was before. Pure."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from shared.amqp.message import IncomingMessage, OutgoingMessage
from shared.contract.names import Names

DUEBELL_HEADERS = ("duebell-", "x-death", "x-first-death", "x-last-death", "x-delivery-count")


@dataclass(frozen=True, slots=True)
class KeptMessage(ABC):
    """A message in `scheduler.parked` or `scheduler.unrouted`."""

    message: IncomingMessage

    @property
    def id(self) -> str:
        """A hash of message_id and body: message_ids of one batch begin alike, and a message that the broker parked
        itself may have none.
        """
        named = (self.message.message_id or "").encode() + b"\0" + self.message.body
        return hashlib.sha256(named).hexdigest()[:16]

    @property
    def job(self) -> str | None:
        """The id in the body, if there is one."""
        found = self.content.get("id")
        return found[:200] if isinstance(found, str) else None

    @property
    def content(self) -> dict[str, Any]:
        """The body, if it is a JSON object; else empty."""
        try:
            content = orjson.loads(self.message.body)
        except orjson.JSONDecodeError:
            return {}
        return content if isinstance(content, dict) else {}

    @property
    @abstractmethod
    def reason(self) -> str:
        """Why the message is kept."""

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """Return what a list shows of the message."""

    @abstractmethod
    def original_message(self, names: Names) -> OutgoingMessage:
        """Return the message as it was, for the exchange it came from."""

    def details(self) -> dict[str, Any]:
        body = self.message.body.decode("utf-8", "replace")
        headers = {name: value for name, value in self.message.headers.items() if name != "duebell-errors"}
        properties = {
            name: getattr(self.message, name)
            for name in ("content_type", "content_encoding", "correlation_id", "reply_to", "timestamp", "app_id")
        }
        return {**self.summary(), **properties, "headers": headers, "bytes": len(self.message.body), "body": body}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of kept messages: its command, and the queue in which they are."""

    command: str
    queue_of: Callable[[Names], str]
    read: Callable[[IncomingMessage], KeptMessage]
