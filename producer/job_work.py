"""The lanes of jobs and triggers: their due rows become ScheduleDue events."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from producer.decisions.claim import Claim
from producer.decisions.due_event import PreparedClaim, prepare, unrouted_copy
from producer.decisions.history import tell_firings
from producer.decisions.plan import DueJob
from producer.decisions.settle import END_OF_TURN, attribute, settle_all
from producer.metrics import Metrics
from producer.reporting import FiredClaim, ReportedLines, report
from producer.store.lanes import Lane, Upcoming, claim_due, look_ahead
from producer.work import Published, PublishedClaim, Settled
from shared.amqp.message import OutgoingMessage, PublishResult
from shared.amqp.publisher import Publisher
from shared.contract.history import HistoryLevel
from shared.contract.names import Names
from shared.postgres.history import add_entries
from shared.postgres.pool import Connection
from shared.runtime.loops import LoopYielder


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWork:
    """One lane of jobs, or of triggers."""

    lane: Lane
    names: Names
    metrics: Metrics
    history: HistoryLevel = HistoryLevel.ALL
    lines: ReportedLines = field(default_factory=ReportedLines)

    @property
    def name(self) -> str:
        return self.lane.name

    @property
    def yields_to_due_now(self) -> bool:
        return self.lane.yields_to_due_now

    async def claim(self, connection: Connection, limit: int, moment: datetime | None) -> Claim[DueJob] | None:
        return await claim_due(connection, self.lane, limit, moment)

    async def look_ahead(self, connection: Connection, moment: datetime | None) -> Upcoming | None:
        return await look_ahead(connection, self.lane, moment)

    async def prepare(self, claim: Claim[DueJob], yielder: LoopYielder) -> PreparedClaim:
        return await prepare(claim, self.names, yielder)

    async def publish(self, publisher: Publisher, prepared: PreparedClaim, timeout: float) -> Published:
        results = await publisher.publish(prepared.messages, timeout)
        results = await self._keep_unrouted(publisher, prepared.messages, results, timeout)
        return Published(attribute(results, len(prepared.firings)), PublishResult.CLOSED in results)

    async def _keep_unrouted(
        self, publisher: Publisher, messages: Sequence[OutgoingMessage], results: list[PublishResult], timeout: float
    ) -> list[PublishResult]:
        """Publish copies of the events that no queue is bound for to `scheduler.unrouted`. An event whose copy is not
        confirmed has the copy's result: its job is fired again.
        """
        unrouted = [place for place, result in enumerate(results) if result is PublishResult.UNROUTED]
        if unrouted:
            copies = [unrouted_copy(messages[place], self.names) for place in unrouted]
            for place, result in zip(unrouted, await publisher.publish(copies, timeout), strict=True):
                if result is not PublishResult.CONFIRMED:
                    results[place] = result
        return results

    async def settle(self, connection: Connection, claim: PublishedClaim[PreparedClaim]) -> Settled:
        """After the commit: each row is past its confirmed occurrences; a row with others is due again, now or after a
        pause.
        """
        firings, results = claim.prepared.firings, claim.published.results
        updates = settle_all(firings, results)
        await self.lane.settle(connection, updates)
        if self.history is not HistoryLevel.OFF:
            told = tell_firings(firings, results, claim.published_at, self.history)
            await add_entries(connection, told, self.history)
        moment = claim.prepared.claim.moment
        return Settled(
            wakes_retry_lane=any(update.pause == END_OF_TURN for update in updates),
            is_due_again=any(update.next is not None and update.next.at <= moment for update in updates),
        )

    async def report(self, claim: PublishedClaim[PreparedClaim], yielder: LoopYielder) -> None:
        prepared, results = claim.prepared, claim.published.results
        fired = FiredClaim(self.lane, prepared.firings, results, claim.published_at)
        await report(self.metrics, self.lines, fired, yielder)
