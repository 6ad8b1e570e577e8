"""The moments at which a crash would do most harm, by name. In production `reached` finds no listener and returns. The
chaos tests start a service with a listener that kills or freezes the process at such a point, and the simulation
crashes a worker there. Code passes a point once per batch, never once per message, except around a webhook call.
"""

from collections.abc import Callable
from enum import StrEnum


class Point(StrEnum):
    CONSUMER_RECEIVED = "consumer: after receiving, before the transaction"
    CONSUMER_APPLIED = "consumer: after the statement, before its commit"
    CONSUMER_COMMITTED = "consumer: after the commit, before parking and answering"
    CONSUMER_ANSWERED = "consumer: after parking and answering, before the ack"
    CONSUMER_ACKNOWLEDGED = "consumer: after the ack"

    PRODUCER_CLAIMED = "producer: after the claim, before the publish"
    PRODUCER_PUBLISHED = "producer: after the publish, before the settling"
    PRODUCER_SETTLED = "producer: after the settling, before its commit"
    PRODUCER_COMMITTED = "producer: after the commit"

    DELIVERY_RECEIVED = "delivery: after receiving, before the insert"
    DELIVERY_STORED = "delivery: after the insert, before the ack"
    DELIVERY_ACKNOWLEDGED = "delivery: after the ack"
    DELIVERY_CLAIMED = "delivery: after the claim, before the call"
    DELIVERY_CALLED = "delivery: after the call, before its record"
    DELIVERY_RECORDED = "delivery: after the record, before the announcement"
    DELIVERY_ANNOUNCED = "delivery: after the announcement, before its commit"


Listener = Callable[[Point], None]

_listener: Listener | None = None


def listen(listener: Listener | None) -> None:
    """Set the listener that `reached` calls; None removes it. Only tests call this."""
    global _listener  # noqa: PLW0603 - one process, one listener
    _listener = listener


def reached(point: Point) -> None:
    """Call the listener of a test, if there is one. Production code calls this at each point."""
    if _listener is not None:
        _listener(point)
