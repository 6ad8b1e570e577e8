"""The states of a delivery and its legal moves: the one table that the SQL guards, the schema and the docs agree with.
Pure.
"""

from enum import StrEnum


class DeliveryStatus(StrEnum):
    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


# New rows are PENDING. The schema also takes PROCESSING: earlier versions stored rows together with their first lease.
DELIVERY_BEGINNINGS = frozenset({DeliveryStatus.PENDING, DeliveryStatus.PROCESSING})

DELIVERY_MOVES: dict[DeliveryStatus, frozenset[DeliveryStatus]] = {
    DeliveryStatus.PENDING: frozenset({DeliveryStatus.PROCESSING}),
    DeliveryStatus.PROCESSING: frozenset({DeliveryStatus.PROCESSING, DeliveryStatus.COMPLETED, DeliveryStatus.FAILED}),
    DeliveryStatus.COMPLETED: frozenset(),
    DeliveryStatus.FAILED: frozenset(),
}


class IllegalMove(Exception):
    """A bug: somebody asked for a change that no delivery may make."""


def checked_move(source: DeliveryStatus, target: DeliveryStatus) -> DeliveryStatus:
    """The target, if it can be reached from the source."""
    if target not in DELIVERY_MOVES[source]:
        raise IllegalMove(f"a delivery cannot go from {source} to {target}")
    return target
