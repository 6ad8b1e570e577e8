"""A delivery: its statuses and legal moves, the row that a claim leases, and what is recorded about it. Pure."""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from delivery.errors import IllegalMove


class DeliveryStatus(StrEnum):
    """The status of a row of `deliveries`."""

    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


# New rows are PENDING. The schema also takes PROCESSING: earlier versions stored rows together with their first lease.
FIRST_STATUSES = frozenset({DeliveryStatus.PENDING, DeliveryStatus.PROCESSING})

# The guards of the SQL statements, the schema and the documentation agree with this table; tests compare them.
LEGAL_MOVES: dict[DeliveryStatus, frozenset[DeliveryStatus]] = {
    DeliveryStatus.PENDING: frozenset({DeliveryStatus.PROCESSING}),
    DeliveryStatus.PROCESSING: frozenset({DeliveryStatus.PROCESSING, DeliveryStatus.COMPLETED, DeliveryStatus.FAILED}),
    DeliveryStatus.COMPLETED: frozenset(),
    DeliveryStatus.FAILED: frozenset(),
}


def checked_move(source: DeliveryStatus, target: DeliveryStatus) -> DeliveryStatus:
    """Return the target status if a delivery may change to it from the source; raise IllegalMove if not."""
    if target not in LEGAL_MOVES[source]:
        raise IllegalMove(f"a delivery cannot go from {source} to {target}")
    return target


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """A claimed row of `deliveries`. It belongs to this process until its lease ends.

    A struct and no dataclass: a process makes thousands of them a second.
    """

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
    payload: str | None  # JSON text
    url: str
    host: str  # host:port
    headers: str  # JSON text
    timeout_seconds: float
    max_retries: int
    retry_count: int
    secret: str | None  # the name of the secret
    traceparent: str | None = None
    trigger_id: str | None = None

    def __repr__(self) -> str:
        """Leave out the payload, the URL and the headers: they may hold secrets."""
        return f"Delivery(id={self.id}, version={self.version}, idempotency_key={self.idempotency_key!r})"


class AttemptRow(msgspec.Struct, frozen=True, gc=False):
    """A new row of `delivery_attempts`: one call, with the status code and the body that came back, or the
    error. The answer of a call that an address rule forbids says which address it was.
    """

    started_at: datetime
    duration: timedelta
    status_code: int | None
    error: str | None
    answer: bytes | None


class DeliveryUpdate(msgspec.Struct, frozen=True, gc=False):
    """What the recorder writes about a claimed delivery: its next status, and the attempt if there was a call."""

    delivery: Delivery
    status: DeliveryStatus
    retry_count: int
    pause: timedelta | None  # until the delivery is due again; None: it has ended
    reason: str | None
    attempt: AttemptRow | None  # None: the delivery is given back without a call


def given_back(delivery: Delivery, pause: timedelta = timedelta(0), reason: str | None = None) -> DeliveryUpdate:
    """Build the update that ends a lease early. There was no call, or it was cancelled: the delivery is due again for
    every replica after the pause, and no attempt is spent.
    """
    status = checked_move(DeliveryStatus.PROCESSING, DeliveryStatus.PROCESSING)
    return DeliveryUpdate(delivery, status, delivery.retry_count, pause, reason, attempt=None)
