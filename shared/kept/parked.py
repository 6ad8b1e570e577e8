"""A message in `scheduler.parked`: it could not be understood, or the broker has given it up. Pure."""

from datetime import datetime
from typing import Any

from msgspec.structs import replace

from shared.amqp.message import OutgoingMessage, copy_to
from shared.contract.names import NAME_HEADER, Names
from shared.kept.message import DUEBELL_HEADERS, KeptMessage, Kind


class Parked(KeptMessage):
    """A parked message. Its headers say who parked it, when, and why."""

    __slots__ = ()

    @property
    def reason(self) -> str:
        reason = self.message.headers.get("duebell-reason")
        if reason is None:
            return f"given up by the broker: {self._death.get('reason', 'unknown')}"
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
        """Return the message as it was. An event goes to the delivery queue alone: other queues have it. A delayed
        message keeps its name and its `message_id`.

        What the headers say of its way counts only if a service has parked it. The broker gives a message up with the
        headers of its sender, who may have made them up: it goes back to an exchange for senders, and to no other. So
        does a delayed message that has expired.
        """
        message, headers, death = self.message, self.message.headers, self._death
        said = headers if message.exchange == names.parking else {}
        from_queue = death.get("queue") if not said else None
        if said.get("duebell-parked-by") == "delivery" or from_queue == names.deliveries:
            exchange, key = "", names.deliveries
        else:
            exchange = str(said.get("duebell-exchange", names.expired_exchange))
            if exchange == names.expired_exchange:
                exchange = _of_senders(str(death.get("exchange")), names)
            key = str(said.get("duebell-routing-key") or (death.get("routing-keys") or [""])[0])
        kept = {name: value for name, value in headers.items() if not name.startswith(DUEBELL_HEADERS)}
        copy = copy_to(message, exchange, key, kept)
        if not exchange.startswith(names.delay_prefix):
            return copy
        if (name := headers.get(NAME_HEADER.decode())) is not None:
            kept[NAME_HEADER.decode()] = name
        return replace(copy, headers=kept, message_id=said.get("duebell-message-id"))

    @property
    def _death(self) -> dict[str, Any]:
        deaths = self.message.headers.get("x-death")
        return deaths[0] if isinstance(deaths, list) and deaths and isinstance(deaths[0], dict) else {}


def _of_senders(exchange: str, names: Names) -> str:
    is_for_senders = exchange == names.masstransit or exchange.startswith(names.delay_prefix)
    return exchange if is_for_senders else names.commands


PARKED = Kind("parked", lambda names: names.parked, Parked)
