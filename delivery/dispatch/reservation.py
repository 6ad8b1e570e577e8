"""What a claim takes: how much it may take, the rows that it has found, and the leases that it leaves. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from delivery.model import Delivery


class LeasedDelivery(msgspec.Struct, frozen=True, gc=False):
    delivery: Delivery
    leased_at: float  # by this process's clock; not later than the lease began in Postgres
    ready_at: float  # when its claim was committed, and it could be called


class Room(NamedTuple):
    """How many rows may be claimed: in all, for each host, and for the hosts that are exceptions."""

    total: int
    per_host: int
    exceptions: Mapping[str, int]


@dataclass(slots=True)
class Reservation:
    """The rows that one claim has found. `LocalQueue.reservation` decides on leaving where they go."""

    leased_at: float
    _reserve: Callable[[Delivery], None]
    rows: list[Delivery] = field(default_factory=list)
    committed_at: float | None = None

    def add(self, found: Sequence[Delivery]) -> None:
        """Move to reserved: from here on these rows take room."""
        for delivery in found:
            self._reserve(delivery)
            self.rows.append(delivery)

    def commit(self, now: float) -> None:
        """The transaction of the claim is committed: the leases are this process's."""
        self.committed_at = now
