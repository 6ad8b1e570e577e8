"""The commands to Duebell, as they go into the outbox: a ScheduleRequest for every event, a ScheduleCancel for one that
is gone. Pure.
"""

from dataclasses import dataclass
from datetime import time
from typing import Any
from uuid import UUID

from examples.birthdays.event_types import event_type
from examples.birthdays.people import Event, User

REQUEST_KEY, CANCEL_KEY = "schedule.request", "schedule.cancel"
TOPIC = "birthdays"


@dataclass(frozen=True, slots=True)
class Terms:
    """How greetings are asked for."""

    greeting_time: time
    webhook_url: str
    webhook_secret_name: str


@dataclass(frozen=True, slots=True)
class Command:
    routing_key: str
    correlation_id: str  # comes back with the verdict
    content: dict[str, Any]


def schedule(user_id: UUID, user: User, event: Event, terms: Terms) -> Command:
    kind = event_type(event.type)
    content = {
        "id": str(event.id),
        "revision": event.revision,
        "rrule": kind.recurrence.rrule(event.marked),
        # Local time and a zone: nine in the morning stays nine in the morning when the clocks change.
        "start_at": f"{event.starts_on.isoformat()}T{terms.greeting_time.isoformat('seconds')}",
        "timezone": user.timezone,
        # After two years of downtime one greeting is sent, not two. A late greeting is still sent.
        "misfire": "latest",
        "topic": f"{TOPIC}.{event.type.lower()}",
        "payload": {
            "user_id": str(user_id),
            "type": event.type,
            "message": kind.message(user),
            "timezone": user.timezone,
            "revision": event.revision,
        },
        "webhook": {"url": terms.webhook_url, "secret": terms.webhook_secret_name, "max_retries": 10},
    }
    return Command(REQUEST_KEY, correlation_id(event.id, event.revision), content)


def cancel(event: Event) -> Command:
    # With the revision, the cancel closes the last request even if it overtakes it on its way.
    content = {"id": str(event.id), "revision": event.revision}
    return Command(CANCEL_KEY, correlation_id(event.id, event.revision), content)


def correlation_id(event_id: UUID, revision: int) -> str:
    return f"{event_id}/{revision}"


def read_correlation_id(text: str) -> tuple[UUID, int]:
    """Read what `correlation_id` wrote. ValueError: another program wrote it."""
    event_id, _, revision = text.partition("/")
    return UUID(event_id), int(revision)
