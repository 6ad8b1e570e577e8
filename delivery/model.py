"""What a delivery is while this process works on it. Pure."""

from datetime import datetime

import msgspec


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """A claimed row: it belongs to this process until its lease ends. (A struct: there are thousands a second.)"""

    id: int
    version: int
    job_id: str
    idempotency_key: str
    topic: str
    sequence: int
    due_at: datetime
    fired_at: datetime
    created_at: datetime
    claimed_at: datetime
    payload: str | None
    url: str
    host: str
    headers: str  # JSON text
    timeout_seconds: float
    max_retries: int
    retry_count: int
    secret: str | None
    traceparent: str | None = None
    trigger_id: str | None = None

    def __repr__(self) -> str:
        """Without what may hold secrets: payload, URL and headers."""
        return f"Delivery(id={self.id}, version={self.version}, idempotency_key={self.idempotency_key!r})"
