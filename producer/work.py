"""What a Firer does with one kind of due rows: jobs and triggers (`producer.job_work`), or delayed messages
(`producer.delayed_work`). The Firer has what is the same for all: transaction, locks, waiting, precedence, claim sizes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from producer.decisions.claim import Claim
from producer.store.lanes import Upcoming
from shared.amqp.message import PublishResult
from shared.amqp.publisher import Publisher
from shared.postgres.pool import Connection
from shared.runtime.loops import LoopYielder

Row = TypeVar("Row")


class Prepared(Protocol):
    """A claim with the messages of its rows, as many as fit into the bounds of one claim."""

    @property
    def taken(self) -> int:
        """How many rows fit."""

    @property
    def leaves_rows(self) -> bool:
        """True if some rows did not fit. They stay unchanged: they are still due, for the next claim."""


AnyPrepared = TypeVar("AnyPrepared", bound=Prepared)


@dataclass(frozen=True, slots=True)
class Published:
    """The publish results of a claim's messages."""

    results: list[PublishResult]
    # The broker closed the channel or the connection over one of the messages, and it is not known over which.
    channel_closed: bool
    reasons: Mapping[str, str] = field(default_factory=dict)  # why an exchange cannot be published to, by its name


@dataclass(frozen=True, slots=True)
class PublishedClaim(Generic[AnyPrepared]):
    """A claim after its publish."""

    prepared: AnyPrepared
    published: Published
    published_at: datetime


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of settling a claim, as far as the loops of the lanes need it."""

    wakes_retry_lane: bool = False  # a row waits for its turn in the retry lane
    is_due_again: bool = False  # a row of the claim comes due again before the claim's moment


class Work(Protocol[Row, AnyPrepared]):
    """One lane of one kind of rows."""

    @property
    def name(self) -> str:
        """The name of the lane."""

    @property
    def yields_to_due_now(self) -> bool:
        """True if its claims wait while other lanes publish: see producer.priority."""

    async def claim(self, connection: Connection, limit: int, moment: datetime | None) -> Claim[Row] | None:
        """Lock up to `limit` due rows until the transaction ends. None: no row is due, or other claims have all."""

    async def look_ahead(self, connection: Connection, moment: datetime | None) -> Upcoming | None:
        """Find when rows come due after the moment, or after now."""

    async def prepare(self, claim: Claim[Row], yielder: LoopYielder) -> AnyPrepared:
        """Write the messages of the claim."""

    async def publish(self, publisher: Publisher, prepared: AnyPrepared, timeout: float) -> Published:
        """Publish the messages. A message without an answer in time is UNKNOWN."""

    async def settle(self, connection: Connection, claim: PublishedClaim[AnyPrepared]) -> Settled:
        """After the commit: rows whose messages were confirmed are done with them, and the history tells."""

    async def report(self, claim: PublishedClaim[AnyPrepared], yielder: LoopYielder) -> None:
        """Count and log the results. It is called after the commit: only then are they final."""
