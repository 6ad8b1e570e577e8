"""An event in `scheduler.unrouted`: it was published, and no queue was bound for it. Pure."""

from datetime import datetime
from typing import Any

import msgspec

from shared.amqp.message import OutgoingMessage, copy_to
from shared.contract.fields import parse_date_time
from shared.contract.names import UNROUTED_KEY_HEADER, Names
from shared.kept.message import DUEBELL_HEADERS, KeptMessage, Kind


class Unrouted(KeptMessage):
    """An unrouted event. A header has the routing key with which it was published."""

    __slots__ = ()

    @property
    def routing_key(self) -> str:
        return str(self.message.headers.get(UNROUTED_KEY_HEADER) or self.message.routing_key)

    @property
    def reason(self) -> str:
        return f"no queue was bound for {self.routing_key} (job {self.job})"

    def summary(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "job": self.job,
            "routing_key": self.routing_key,
            "due_at": _instant(self.content.get("due_at")),
            "published_at": self.message.timestamp,
        }

    def original_message(self, names: Names) -> OutgoingMessage:
        """Return the event as it was, under its own message_id. It stays kept if still no queue is bound for it."""
        headers = {name: value for name, value in self.message.headers.items() if not name.startswith(DUEBELL_HEADERS)}
        event = copy_to(self.message, names.events, self.routing_key, headers)
        return msgspec.structs.replace(event, message_id=self.message.message_id, may_be_unrouted=True)


def _instant(text: object) -> datetime | None:
    try:
        return parse_date_time(text) if isinstance(text, str) else None
    except ValueError:
        return None


UNROUTED = Kind("unrouted", lambda names: names.unrouted, Unrouted)
