"""The rows that one transaction has locked to publish them. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Claim(Generic[Row]):
    """The due rows that one transaction has locked."""

    now: datetime  # when the transaction began, by Postgres' clock
    moment: datetime  # at which the rows are due: now, or a little later
    rows: list[Row]
    # How many rows are locked. They are more than `rows` if the others did not fit into the bounds of one claim.
    found: int

    @property
    def fired_at(self) -> datetime:
        """The moment; or now, if the moment passed while the producer waited for the broker or the database."""
        return max(self.moment, self.now)

    @property
    def seconds_ahead(self) -> float:
        """How long after the beginning of the transaction the moment comes."""
        return (self.moment - self.now).total_seconds()
