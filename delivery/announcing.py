"""Tells the applications how their deliveries ended: publishes `delivery.completed.<topic>` and
`delivery.failed.<topic>` of committed rows, and forgets a row's announcement when the broker has confirmed it. A crash
in between publishes it twice, never not at all.
"""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

import orjson

from delivery.metrics import Metrics
from delivery.recorded import Recorded
from delivery.states import DeliveryStatus
from delivery.store_ended import Announcement, claim_announcements, settle_announcements
from shared.backoff import Backoff
from shared.bell import Bell
from shared.broker import Broker
from shared.database import PASSING_TROUBLE, Connection, Pool, describe
from shared.fault_points import Point, reached
from shared.instants import AS_INSTANTS
from shared.lifecycle import Stop, first_of
from shared.logs import get_log
from shared.messages import COMPLETED_TYPE, FAILED_TYPE
from shared.names import Names, delivery_routing_key
from shared.outgoing import Outgoing, Verdict
from shared.publishing import Publisher
from shared.pulse import beat
from shared.tracing import trace_headers

ACQUIRE_TIMEOUT = 10.0
BATCH = 500
# For what another process left behind.
POLL_SECONDS = 1.0
LONGEST_PAUSE = timedelta(minutes=5)
ENDED = frozenset({DeliveryStatus.COMPLETED, DeliveryStatus.FAILED})
# What has not been published by then, or is too much, is left to the table.
LONGEST_IN_MEMORY = 5.0
MOST_IN_MEMORY = 5000
# After the confirm, to delete the row: half of it for a connection.
TIME_TO_FORGET = 5.0


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
    """1, 2, 4 … seconds, five minutes at most: an application whose queue is full keeps nobody else waiting."""
    doubled: int = 2 ** min(refusals, 20)
    return min(LONGEST_PAUSE, timedelta(seconds=1) * doubled)


def announcement_of(result: Recorded) -> Announcement:
    """What the table would say of a delivery that has just ended."""
    delivery = result.delivery
    return Announcement(
        delivery_id=delivery.id,
        refusals=0,
        job_id=delivery.job_id,
        topic=delivery.topic,
        sequence=delivery.sequence,
        due_at=delivery.due_at,
        idempotency_key=delivery.idempotency_key,
        status=result.status,
        attempts=result.retry_count + 1,
        failure_reason=result.reason,
        traceparent=delivery.traceparent,
        trigger_id=delivery.trigger_id,
    )


class Promise(NamedTuple):
    """That what is recorded now is announced from memory within so many seconds: for as long its row is left alone."""

    made_at: float  # by time.monotonic(), and before Postgres begins to record
    within: float


class _Batch(NamedTuple):
    ended: list[Announcement]
    promised_at: float


@dataclass(slots=True)
class Announcer:
    """Whoever records an end announces it, from memory. Its row is there for when that fails: it is due when the time
    that was promised is over, and then anybody's.
    """

    pool: Pool
    broker: Broker
    publisher: Publisher
    metrics: Metrics
    publish_timeout: float
    _fresh: deque[_Batch] = field(default_factory=deque)
    _bell: Bell = field(default_factory=Bell)
    _look_again_at: float = 0.0

    def promise(self) -> Promise:
        """To whoever is about to record ends. With none to spare, their rows are due, and anybody's, at once."""
        in_memory = sum(len(batch.ended) for batch in self._fresh)
        longest = LONGEST_IN_MEMORY + self.publish_timeout + TIME_TO_FORGET
        return Promise(time.monotonic(), longest if in_memory < MOST_IN_MEMORY else 0.0)

    def announce(self, results: Sequence[Recorded], promise: Promise) -> None:
        """Those of them that ended, soon."""
        ended = [announcement_of(result) for result in results if result.status in ENDED]
        if ended and promise.within:
            self._fresh.append(_Batch(ended, promise.made_at))
        self._bell.ring()

    async def run(self, stop: Stop) -> None:
        """Until the stop comes, and once more after it: for what ended last."""
        backoff = Backoff()
        stopping = False
        while not stopping:
            stopping = stop.requested
            self._bell.silence()  # before looking: what rings from here on is looked at again
            if await self._announce_all():
                backoff.reset()
                await first_of(self._bell.wait(POLL_SECONDS), stop.wait())
            else:
                await stop.sleep(backoff.next_pause())

    async def _announce_all(self) -> bool:
        """False if something stands in the way. What is fresh and what the table has take turns: however much there is
        of the one, the other does not wait for its end.
        """
        try:
            full = stuck = False
            while not stuck and (self._fresh or full or time.monotonic() >= self._look_again_at):
                beat()
                if self._fresh:
                    stuck = await self.announce_fresh_once()
                if not stuck and (full or time.monotonic() >= self._look_again_at):
                    full, stuck = await self.announce_once()
                    self._look_again_at = time.monotonic() + POLL_SECONDS
        except PASSING_TROUBLE as error:
            get_log().warning("announcing_waits", error=describe(error))
            return False
        return not stuck

    async def announce_fresh_once(self) -> bool:
        """What was recorded here. Whether the broker gave no verdict on some of it: that is left to the table."""
        if not self.broker.is_up:
            return True
        await self.publisher.mend()  # it may take long, and then some of it is somebody else's
        ended: list[Announcement] = []
        while self._fresh and len(ended) < BATCH:
            batch = self._fresh.popleft()
            if time.monotonic() - batch.promised_at < LONGEST_IN_MEMORY:
                ended += batch.ended
        if not ended:
            return False
        verdicts = await self._publish(ended)
        reached(Point.DELIVERY_ANNOUNCED)
        async with self.pool.acquire(timeout=TIME_TO_FORGET / 2) as connection:
            await _settle(connection, ended, verdicts)
        self._observe(ended, verdicts)
        return Verdict.UNKNOWN in verdicts

    async def announce_once(self) -> tuple[bool, bool]:
        """What nobody has announced in time. Whether there may be more, and whether the broker gave no verdict on some
        of it.
        """
        if not self.broker.is_up:
            return False, True
        await self.publisher.mend()  # not while rows are locked
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
            ended = await claim_announcements(connection, BATCH)
            verdicts = await self._publish(ended)
            await _settle(connection, ended, verdicts)
            if ended:
                reached(Point.DELIVERY_ANNOUNCED)
        self._observe(ended, verdicts)
        return len(ended) == BATCH, Verdict.UNKNOWN in verdicts

    async def _publish(self, ended: Sequence[Announcement]) -> list[Verdict]:
        return await self.publisher.publish(
            [outcome_event(one, self.broker.names) for one in ended], self.publish_timeout
        )

    def _observe(self, ended: Sequence[Announcement], verdicts: Sequence[Verdict]) -> None:
        self.metrics.announced.inc(verdicts.count(Verdict.CONFIRMED))
        for one, verdict in zip(ended, verdicts, strict=True):
            if verdict is not Verdict.CONFIRMED:
                self.metrics.not_announced.labels(verdict).inc()
                get_log().warning(
                    "outcome_not_announced",
                    idempotency_key=one.idempotency_key,
                    verdict=verdict,
                    **trace_headers(one.traceparent),
                )


async def _settle(connection: Connection, ended: Sequence[Announcement], verdicts: Sequence[Verdict]) -> None:
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
