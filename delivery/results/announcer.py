"""Tells the applications how their deliveries ended: publishes `delivery.completed.<topic>` and
`delivery.failed.<topic>` for the rows of `delivery_announcements`, and deletes a row when the broker has confirmed its
event. The rows are locked meanwhile, so that no other replica publishes them. A crash before the commit publishes an
event twice, never not at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import orjson

from delivery.metrics import Metrics
from delivery.model import DeliveryStatus
from delivery.store.announcements import Announcement, claim_announcements, settle_announcements
from shared.amqp.connection import Broker
from shared.amqp.message import OutgoingMessage, PublishResult
from shared.amqp.publisher import Publisher
from shared.contract.fields import AS_INSTANTS, trace_headers
from shared.contract.messages import COMPLETED_TYPE, FAILED_TYPE
from shared.contract.names import Names, delivery_routing_key
from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.postgres.pool import ACQUIRE_TIMEOUT, Connection, Pool
from shared.runtime.backoff import Backoff
from shared.runtime.fault_points import Point, reached
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, first_of, mark_turn
from shared.runtime.wakeup import Wakeup

ANNOUNCE_BATCH_ROWS = 500
# For announcements that another process left in the table, and for those that were refused.
ANNOUNCE_POLL_SECONDS = 1.0
MAX_ANNOUNCE_PAUSE = timedelta(minutes=5)


def outcome_event(ended: Announcement, names: Names) -> OutgoingMessage:
    completed = ended.status is DeliveryStatus.COMPLETED
    return OutgoingMessage(
        exchange=names.events,
        routing_key=delivery_routing_key(ended.topic, completed=completed),
        body=orjson.dumps(
            {
                "id": ended.job_id,
                "topic": ended.topic,
                "sequence": ended.sequence,
                **({"trigger_id": ended.trigger_id} if ended.trigger_id is not None else {}),
                "due_at": ended.due_at,
                "idempotency_key": ended.idempotency_key,
                "status": ended.status,
                "attempts": ended.attempts,
                "reason": ended.failure_reason,
            },
            option=AS_INSTANTS,
        ),
        type=COMPLETED_TYPE if completed else FAILED_TYPE,
        headers={"idempotency-key": ended.idempotency_key, **trace_headers(ended.traceparent)},
    )


def pause_after(refusals: int) -> timedelta:
    """1, 2, 4 … seconds, five minutes at most: an application whose queue is full keeps no other waiting."""
    doubled: int = 2 ** min(refusals, 20)
    return min(MAX_ANNOUNCE_PAUSE, timedelta(seconds=1) * doubled)


@dataclass(slots=True)
class Announcer:
    pool: Pool
    broker: Broker
    publisher: Publisher
    metrics: Metrics
    publish_timeout: float
    _wakeup: Wakeup = field(default_factory=Wakeup)

    def wake(self) -> None:
        """Deliveries have ended and are committed: announce them now, not at the next poll."""
        self._wakeup.set()

    async def run(self, stop: Stop) -> None:
        """Until the stop, and once more after it: for deliveries that ended last."""
        backoff = Backoff()
        stopping = False
        while not stopping:
            stopping = stop.requested
            self._wakeup.clear()  # before looking: a wake-up from here on leads to another look
            if await self._announce_all():
                backoff.reset()
                await first_of(self._wakeup.wait(ANNOUNCE_POLL_SECONDS), stop.wait())
            else:
                await stop.sleep(backoff.next_pause())

    async def _announce_all(self) -> bool:
        """Announce batch after batch until there is none left. False if the broker or the database is in the way."""
        try:
            full = True
            while full:
                mark_turn()
                full, stuck = await self.announce_once()
                if stuck:
                    return False
        except RETRYABLE_ERRORS as error:
            get_log().warning("announcing_waits", error=describe(error))
            return False
        return True

    async def announce_once(self) -> tuple[bool, bool]:
        """Announce one batch. Returns whether there may be more, and whether the broker gave no verdict on some of it.

        After the commit: what was confirmed is deleted, what was refused waits for its pause; the rest is as it was.
        """
        if not self.broker.is_up:
            return False, True
        await self.publisher.recover_channel()  # not while rows are locked
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
            ended = await claim_announcements(connection, ANNOUNCE_BATCH_ROWS)
            verdicts = await self._publish(ended)
            await _settle(connection, ended, verdicts)
            if ended:
                reached(Point.DELIVERY_ANNOUNCED)
        self._observe(ended, verdicts)
        return len(ended) == ANNOUNCE_BATCH_ROWS, PublishResult.UNKNOWN in verdicts

    async def _publish(self, ended: Sequence[Announcement]) -> list[PublishResult]:
        return await self.publisher.publish(
            [outcome_event(one, self.broker.names) for one in ended], self.publish_timeout
        )

    def _observe(self, ended: Sequence[Announcement], verdicts: Sequence[PublishResult]) -> None:
        self.metrics.announced.inc(verdicts.count(PublishResult.CONFIRMED))
        for one, verdict in zip(ended, verdicts, strict=True):
            if verdict is not PublishResult.CONFIRMED:
                self.metrics.not_announced.labels(verdict).inc()
                get_log().warning(
                    "outcome_not_announced",
                    idempotency_key=one.idempotency_key,
                    verdict=verdict,
                    **trace_headers(one.traceparent),
                )


async def _settle(connection: Connection, ended: Sequence[Announcement], verdicts: Sequence[PublishResult]) -> None:
    judged = list(zip(ended, verdicts, strict=True))
    await settle_announcements(
        connection,
        [one.delivery_id for one, verdict in judged if verdict is PublishResult.CONFIRMED],
        {
            one.delivery_id: pause_after(one.refusals)
            for one, verdict in judged
            if verdict not in {PublishResult.CONFIRMED, PublishResult.UNKNOWN}
        },
    )
