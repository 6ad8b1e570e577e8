"""The lanes of delayed messages: they are published as they came, to the exchange that their delay exchange is named
after. A message that the broker does not take is kept, and tried again after a growing pause.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from producer.decisions.claim import Claim
from producer.decisions.delayed import (
    DueMessage,
    PreparedMessages,
    attribute_close,
    is_refused,
    reason_of,
    refusals_of,
    tell_messages,
)
from producer.decisions.due_event import MAX_CLAIM_BYTES
from producer.metrics import DelayedMetrics
from producer.store.delayed import DelayedLane, claim_messages, look_ahead_delayed, settle_messages
from producer.store.lanes import Upcoming
from producer.work import Published, PublishedClaim, Settled
from shared.amqp.message import PublishResult
from shared.amqp.publisher import Publisher
from shared.amqp.targets import TargetExchanges
from shared.contract.history import HistoryLevel
from shared.postgres.history import add_entries
from shared.postgres.pool import Connection
from shared.runtime.lateness import LATE_AFTER
from shared.runtime.logs import get_log
from shared.runtime.loops import LoopYielder


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedWork:
    """One lane of delayed messages."""

    lane: DelayedLane
    targets: TargetExchanges
    metrics: DelayedMetrics
    history: HistoryLevel = HistoryLevel.ALL

    @property
    def name(self) -> str:
        return self.lane.name

    @property
    def yields_to_due_now(self) -> bool:
        return self.lane.yields_to_due_now

    async def claim(self, connection: Connection, limit: int, moment: datetime | None) -> Claim[DueMessage] | None:
        return await claim_messages(connection, self.lane, limit, MAX_CLAIM_BYTES, moment)

    async def look_ahead(self, connection: Connection, moment: datetime | None) -> Upcoming | None:
        return await look_ahead_delayed(connection, self.lane, moment)

    async def prepare(self, claim: Claim[DueMessage], yielder: LoopYielder) -> PreparedMessages:
        """Look whether the target exchanges are there. The messages themselves are ready."""
        await yielder.give_way()
        return PreparedMessages(claim, await self.targets.find_unusable({row.message.exchange for row in claim.rows}))

    async def publish(self, publisher: Publisher, prepared: PreparedMessages, timeout: float) -> Published:
        rows = [row for row in prepared.claim.rows if row.message.exchange not in prepared.unusable]
        results = await publisher.publish_raw([row.message for row in rows], timeout)
        reasons, closed_over = dict(prepared.unusable), None
        channel_closed = PublishResult.CLOSED in results
        if channel_closed:
            closed_over = self.targets.refuse(publisher.close_reason)
            for row in rows:
                if closed_over in {None, row.message.exchange}:
                    reasons[row.message.exchange] = publisher.close_reason
            results = attribute_close(rows, results, closed_over)
        of_rows = dict(zip((row.id for row in rows), results, strict=True))
        return Published(
            [of_rows.get(row.id, PublishResult.NO_TARGET) for row in prepared.claim.rows],
            channel_closed and closed_over is None,
            reasons,
        )

    async def settle(self, connection: Connection, claim: PublishedClaim[PreparedMessages]) -> Settled:
        """After the commit: published messages are gone, and refused ones wait for a growing pause."""
        rows, results, reasons = claim.prepared.claim.rows, claim.published.results, claim.published.reasons
        published = [row.id for row, result in zip(rows, results, strict=True) if result is PublishResult.CONFIRMED]
        await settle_messages(connection, published, refusals_of(rows, results, reasons))
        if self.history is not HistoryLevel.OFF:
            told = tell_messages(rows, results, reasons, claim.published_at, self.history)
            await add_entries(connection, told, self.history)
        return Settled()

    async def report(self, claim: PublishedClaim[PreparedMessages], yielder: LoopYielder) -> None:
        rows, results = claim.prepared.claim.rows, claim.published.results
        counts = Counter((row.message.exchange, result) for row, result in zip(rows, results, strict=True))
        for (exchange, result), count in counts.items():
            if result is PublishResult.CONFIRMED:
                self.metrics.of_exchange(exchange).published.inc(count)
            else:
                self.metrics.not_published[result].inc(count)
        late = 0
        for row, result in zip(rows, results, strict=True):
            if yielder.is_due:
                await yielder.give_way()
            if result is PublishResult.CONFIRMED:
                lateness = claim.published_at - row.due_at
                self.metrics.lateness.observe(lateness.total_seconds())
                late += lateness > LATE_AFTER
        if late:
            self.metrics.late.inc(late)
            get_log().warning("delayed_late", lane=self.name, count=late)
        self._log_refused(claim)

    def _log_refused(self, claim: PublishedClaim[PreparedMessages]) -> None:
        """Log one line for each exchange whose messages the broker does not take."""
        counts: Counter[tuple[str, str]] = Counter()
        for row, result in zip(claim.prepared.claim.rows, claim.published.results, strict=True):
            if is_refused(result):
                counts[row.message.exchange, reason_of(row, result, claim.published.reasons)] += 1
        for (exchange, reason), count in counts.items():
            get_log().warning("delayed_refused", lane=self.name, exchange=exchange, reason=reason, count=count)
