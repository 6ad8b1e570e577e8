"""A command that is being sent. It stays the same, however often it has to be sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A command as it is published. `made_at` is where a rule without `start_at` begins, so it must not change when the
    command is sent again.
    """

    id: str
    type: str
    routing_key: str
    body: bytes
    made_at: datetime
    user_id: str | None = None
    app_id: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
