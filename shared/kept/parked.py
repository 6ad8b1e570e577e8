"""A message in `scheduler.parked`: it could not be understood, or the broker has given it up. Pure."""

from datetime import datetime
from typing import Any

from shared.amqp.message import OutgoingMessage
from shared.amqp.parking import copy_to
from shared.contract.names import Names
from shared.kept.message import DUEBELL_HEADERS, KeptMessage, Kind


class Parked(KeptMessage):
    """A parked message. Its headers say who parked it, when, and why."""

    __slots__ = ()

    @property
    def reason(self) -> str:
        reason = self.message.headers.get("duebell-reason")
        if reason is None:
            deaths = self.message.headers.get("x-death") or [{}]
            return f"given up by the broker: {deaths[0].get('reason', 'unknown')}"
        return str(reason)

    def summary(self) -> dict[str, Any]:
        headers = self.message.headers
        parked_at = headers.get("duebell-parked-at")
        return {
            "id": self.id,
            "parked_at": parked_at if isinstance(parked_at, datetime) else None,
            "parked_by": headers.get("duebell-parked-by", "broker"),
            "type": self.message.type or headers.get("duebell-routing-key"),
            "job": self.job,
            "reason": self.reason,
        }

    def original_message(self, names: Names) -> OutgoingMessage:
        """Return the message as it was. An event goes to the delivery queue alone: other queues have it."""
        message, headers = self.message, self.message.headers
        deaths = headers.get("x-death") or [{}]
        from_queue = names.deliveries if headers.get("duebell-parked-by") == "delivery" else deaths[0].get("queue")
        if from_queue == names.deliveries:
            exchange, key = "", names.deliveries
        else:
            exchange = str(headers.get("duebell-exchange") or deaths[0].get("exchange") or names.commands)
            key = str(headers.get("duebell-routing-key") or (deaths[0].get("routing-keys") or [""])[0])
        kept = {name: value for name, value in headers.items() if not name.startswith(DUEBELL_HEADERS)}
        return copy_to(message, exchange, key, kept)


PARKED = Kind("parked", lambda names: names.parked, Parked)
