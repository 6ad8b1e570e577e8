"""Tells applications how their deliveries ended: publishes the outcome events `delivery.completed.<topic>` and
`delivery.failed.<topic>` for rows of `delivery_announcements`, and deletes a row when the broker has confirmed its
event. The transaction locks the rows meanwhile, so that no other replica publishes them. After a crash before the
commit, an event is published twice; no event is lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from delivery.metrics import Metrics
from delivery.model import DeliveryStatus
from delivery.store.announcements import Announcement, claim_announcements, record_announced
from shared.amqp.connection import Broker
from shared.amqp.message import OutgoingMessage, PublishResult
from shared.amqp.publisher import Publisher
from shared.contract.fields import AS_INSTANTS, trace_headers
from shared.contract.messages import COMPLETED_TYPE, FAILED_TYPE
from shared.contract.names import IDEMPOTENCY_HEADER, Names, delivery_routing_key
from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.postgres.pool import ACQUIRE_TIMEOUT, Connection, Pool
from shared.runtime.backoff import Backoff, pause_after
from shared.runtime.fault_points import Point, reached
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, first_of, mark_turn
from shared.runtime.wakeup import Wakeup

ANNOUNCE_BATCH_ROWS = 500
# The poll finds announcements that another process left in the table, and refused ones whose pause is over.
ANNOUNCE_POLL_SECONDS = 1.0


def outcome_event(announcement: Announcement, names: Names) -> OutgoingMessage:
    """Build the outcome event of a delivery."""
    completed = announcement.status is DeliveryStatus.COMPLETED
    return OutgoingMessage(
        exchange=names.events,
        routing_key=delivery_routing_key(announcement.topic, completed=completed),
        body=orjson.dumps(
            {
                "id": announcement.job_id,
                "topic": announcement.topic,
                "sequence": announcement.sequence,
                **({"trigger_id": announcement.trigger_id} if announcement.trigger_id is not None else {}),
                "due_at": announcement.due_at,
                "idempotency_key": announcement.idempotency_key,
                "status": announcement.status,
                "attempts": announcement.attempts,
                "reason": announcement.failure_reason,
            },
            option=AS_INSTANTS,
        ),
        type=COMPLETED_TYPE if completed else FAILED_TYPE,
        headers={IDEMPOTENCY_HEADER: announcement.idempotency_key, **trace_headers(announcement.traceparent)},
        mandatory=False,  # applications that do not ask for outcome events bind no queue for them
    )


@dataclass(slots=True)
class Announcer:
    """Publishes outcome events, batch after batch."""

    pool: Pool
    broker: Broker
    publisher: Publisher
    metrics: Metrics
    publish_timeout: float
    _wakeup: Wakeup = field(default_factory=Wakeup)

    def wake(self) -> None:
        """Announce now, and not at the next poll. The recorder calls this after each commit."""
        self._wakeup.set()

    async def run(self, stop: Stop) -> None:
        """Announce until the stop, and one batch more after it, for the deliveries that ended last.

        Announcements that are left stay in the table: another replica publishes them, or the next start of this one.
        """
        backoff = Backoff()
        stopping = False
        while not stopping:
            stopping = stop.requested
            self._wakeup.clear()  # before the claim: a wakeup from here on leads to another claim
            if await self._announce_all(stop):
                backoff.reset()
                await first_of(self._wakeup.wait(ANNOUNCE_POLL_SECONDS), stop.wait())
            else:
                await stop.sleep(backoff.next_pause())

    async def _announce_all(self, stop: Stop) -> bool:
        """Announce batch after batch until no row is due or the stop comes. Return False if the broker or Postgres does
        not answer.
        """
        try:
            full = True
            while full:
                mark_turn()
                full, stuck = await self.announce_once()
                if stuck:
                    return False
                if stop.requested:
                    break
        except RETRYABLE_ERRORS as error:
            get_log().warning("announcing_waits", error=describe(error))
            return False
        return True

    async def announce_once(self) -> tuple[bool, bool]:
        """Announce one batch. Return whether more rows may be due, and whether some publish results are unknown.

        After the commit: rows of confirmed events are deleted, rows of refused events are due after a pause, and rows
        whose publish result is unknown are unchanged.
        """
        if not self.broker.is_up:
            return False, True
        await self.publisher.recover_channel()  # before rows are locked: it may take long
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
            announcements = await claim_announcements(connection, ANNOUNCE_BATCH_ROWS)
            results = await self._publish(announcements)
            await _record(connection, announcements, results)
            if announcements:
                reached(Point.DELIVERY_ANNOUNCED)
        self._observe(announcements, results)
        return len(announcements) == ANNOUNCE_BATCH_ROWS, PublishResult.UNKNOWN in results

    async def _publish(self, announcements: Sequence[Announcement]) -> list[PublishResult]:
        return await self.publisher.publish(
            [outcome_event(one, self.broker.names) for one in announcements], self.publish_timeout
        )

    def _observe(self, announcements: Sequence[Announcement], results: Sequence[PublishResult]) -> None:
        self.metrics.announced.inc(results.count(PublishResult.CONFIRMED))
        for one, result in zip(announcements, results, strict=True):
            if result is not PublishResult.CONFIRMED:
                self.metrics.not_announced.labels(result).inc()
                get_log().warning(
                    "outcome_not_announced",
                    idempotency_key=one.idempotency_key,
                    verdict=result,
                    **trace_headers(one.traceparent),
                )


async def _record(
    connection: Connection, announcements: Sequence[Announcement], results: Sequence[PublishResult]
) -> None:
    published = list(zip(announcements, results, strict=True))
    await record_announced(
        connection,
        [one.delivery_id for one, result in published if result is PublishResult.CONFIRMED],
        {
            one.delivery_id: pause_after(one.refusals + 1)
            for one, result in published
            if result not in {PublishResult.CONFIRMED, PublishResult.UNKNOWN}
        },
    )
