"""Tells the applications how their deliveries ended: publishes `delivery.completed.<topic>` and
`delivery.failed.<topic>` from committed rows, and forgets a row's announcement when the broker has confirmed it. A
crash in between publishes it twice, never not at all.
"""

from dataclasses import dataclass
from datetime import timedelta

import orjson

from delivery.metrics import Metrics
from delivery.states import DeliveryStatus
from delivery.store_ended import Announcement, claim_announcements, settle_announcements
from shared.backoff import Backoff
from shared.bell import Bell
from shared.broker import Broker
from shared.database import PASSING_TROUBLE, Pool, describe
from shared.fault_points import Point, reached
from shared.instants import format_instant
from shared.lifecycle import Stop, first_of
from shared.logs import get_log
from shared.messages import COMPLETED_TYPE, FAILED_TYPE
from shared.names import Names, delivery_routing_key
from shared.outgoing import Outgoing, Verdict
from shared.publishing import Publisher
from shared.pulse import beat
from shared.tracing import trace_headers

ACQUIRE_TIMEOUT = 10.0
BATCH = 200
# The bell rings in the process that recorded; this is for what another left behind.
POLL_SECONDS = 1.0
LONGEST_PAUSE = timedelta(minutes=5)


def outcome_event(ended: Announcement, names: Names) -> Outgoing:
    completed = ended.status is DeliveryStatus.COMPLETED
    return Outgoing(
        exchange=names.events,
        routing_key=delivery_routing_key(ended.topic, completed=completed),
        body=orjson.dumps(
            {
                "id": ended.job_id,
                "topic": ended.topic,
                "sequence": ended.sequence,
                **({"trigger_id": ended.trigger_id} if ended.trigger_id is not None else {}),
                "due_at": format_instant(ended.due_at),
                "idempotency_key": ended.idempotency_key,
                "status": ended.status,
                "attempts": ended.attempts,
                "reason": ended.failure_reason,
            }
        ),
        type=COMPLETED_TYPE if completed else FAILED_TYPE,
        headers={"idempotency-key": ended.idempotency_key, **trace_headers(ended.traceparent)},
    )


def pause_after(refusals: int) -> timedelta:
    """1, 2, 4 … seconds, five minutes at most: an application whose queue is full keeps nobody else waiting."""
    doubled: int = 2 ** min(refusals, 20)
    return min(LONGEST_PAUSE, timedelta(seconds=1) * doubled)


@dataclass(frozen=True, slots=True)
class Announcer:
    pool: Pool
    broker: Broker
    publisher: Publisher
    metrics: Metrics
    bell: Bell
    publish_timeout: float

    async def run(self, stop: Stop) -> None:
        """Until the stop comes, and once more after it: for what ended last."""
        backoff = Backoff()
        stopping = False
        while not stopping:
            stopping = stop.requested
            self.bell.silence()  # before looking: what rings from here on is looked at again
            if await self._announce_all():
                backoff.reset()
                await first_of(self.bell.wait(POLL_SECONDS), stop.wait())
            else:
                await stop.sleep(backoff.next_pause())

    async def _announce_all(self) -> bool:
        """False if something stands in the way."""
        try:
            full, stuck = True, False
            while full and not stuck:
                beat()
                full, stuck = await self.announce_once()
        except PASSING_TROUBLE as error:
            get_log().warning("announcing_waits", error=describe(error))
            return False
        return not stuck

    async def announce_once(self) -> tuple[bool, bool]:
        """Whether there may be more, and whether the broker gave no verdict on some of it."""
        if not self.broker.is_up:
            return False, True
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
            ended = await claim_announcements(connection, BATCH)
            events = [outcome_event(one, self.broker.names) for one in ended]
            verdicts = await self.publisher.publish(events, self.publish_timeout)
            judged = list(zip(ended, verdicts, strict=True))
            await settle_announcements(
                connection,
                [one.delivery_id for one, verdict in judged if verdict is Verdict.CONFIRMED],
                {
                    one.delivery_id: pause_after(one.refusals)
                    for one, verdict in judged
                    if verdict not in {Verdict.CONFIRMED, Verdict.UNKNOWN}
                },
            )
            if ended:
                reached(Point.DELIVERY_ANNOUNCED)
        for one, verdict in judged:
            if verdict is Verdict.CONFIRMED:
                self.metrics.announced.inc()
            else:
                self.metrics.not_announced.labels(verdict).inc()
                get_log().warning(
                    "outcome_not_announced",
                    idempotency_key=one.idempotency_key,
                    verdict=verdict,
                    **trace_headers(one.traceparent),
                )
        return len(ended) == BATCH, Verdict.UNKNOWN in verdicts
