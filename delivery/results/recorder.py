"""Writes down how attempts ended, many at a time: the updates that came while one batch was being written are the next
batch. An update that cannot be written is kept and tried again. Until it is written the local queue counts it as
unwritten, and too many of those stop new calls: nothing piles up behind a database that is down.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from delivery.metrics import Metrics
from delivery.model import Delivery, DeliveryStatus, DeliveryUpdate
from delivery.results.announcer import Announcer
from delivery.store.results import record
from shared.contract.fields import format_instant, trace_headers
from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.postgres.pool import ACQUIRE_TIMEOUT, Pool, store_together_or_one_by_one
from shared.runtime.backoff import Backoff
from shared.runtime.fault_points import Point, reached
from shared.runtime.lateness import LATE_AFTER, Stage
from shared.runtime.logs import Log, get_log
from shared.runtime.loops import waiting_outside

RECORD_BATCH_ROWS = 500


@dataclass(slots=True)
class Recorder:
    pool: Pool
    metrics: Metrics
    announcer: Announcer
    _waiting: list[DeliveryUpdate] = field(default_factory=list)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: bool = False

    def submit(self, result: DeliveryUpdate) -> None:
        self._waiting.append(result)
        self._arrived.set()

    def close(self) -> None:
        """No more will be submitted: `run` ends when all is written."""
        self._closing = True
        self._arrived.set()

    async def run(self, on_written: Callable[[Sequence[DeliveryUpdate]], None]) -> None:
        """Tells of each batch that is written, or known to be void."""
        backoff = Backoff()
        while True:
            with waiting_outside():
                await self._arrived.wait()
            batch, self._waiting = self._waiting[:RECORD_BATCH_ROWS], self._waiting[RECORD_BATCH_ROWS:]
            if not batch:
                if self._closing:
                    return
                self._arrived.clear()
                continue
            try:
                await self._write(batch)
                backoff.reset()
            except RETRYABLE_ERRORS as error:
                self._waiting = batch + self._waiting
                pause = backoff.next_pause()
                get_log().warning("recording_waits", error=describe(error), retry_in_seconds=round(pause, 1))
                await asyncio.sleep(pause)
                continue
            on_written(batch)

    async def _write(self, results: Sequence[DeliveryUpdate]) -> None:
        written = await store_together_or_one_by_one(
            results,
            self._write_together,
            _refused,
            self.metrics.split_batches.inc,
        )
        reached(Point.DELIVERY_RECORDED)
        self.announcer.wake()
        in_detail = get_log().is_enabled_for(logging.DEBUG)
        for result, kept in zip(results, written, strict=True):
            try:
                self._observe(result, kept=kept, in_detail=in_detail)
            except Exception as error:  # noqa: BLE001 - it is written; what is said about it must not undo that
                get_log().error("observing_failed", error_type=type(error).__name__)

    async def _write_together(self, results: Sequence[DeliveryUpdate]) -> list[bool]:
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            held = await record(connection, results)
        return [(result.delivery.id, result.delivery.version) in held for result in results]

    def _observe(self, result: DeliveryUpdate, *, kept: bool, in_detail: bool) -> None:
        """Of most there is nothing to say, and making a log ready to say it would take longer than all the rest."""
        delivery, attempt = result.delivery, result.attempt
        if not kept:
            self.metrics.leases_lost.inc()
            _log_about(result).warning("lease_lost", dropped=result.status)
            return
        if attempt is None:
            self.metrics.given_back.inc()
            _log_about(result).info("given_back", reason=result.reason)
            return
        if delivery.retry_count == 0:
            self.metrics.lateness[Stage.FIRST_ATTEMPT].observe((attempt.started_at - delivery.due_at).total_seconds())
        match result.status:
            case DeliveryStatus.COMPLETED:
                self.metrics.completed.inc()
                if in_detail:
                    _log_about(result).debug("delivered")
                delivered_at = attempt.started_at + attempt.duration
                self.metrics.lateness[Stage.DELIVERED].observe((delivered_at - delivery.due_at).total_seconds())
                if log_if_late(delivery, delivered_at):
                    self.metrics.late.inc()
            case DeliveryStatus.FAILED:
                self.metrics.failed.inc()
                _log_about(result).warning("delivery_failed", reason=result.reason)
            case _:
                self.metrics.retries.inc()
                pause = result.pause.total_seconds() if result.pause is not None else 0.0
                _log_about(result).info("delivery_retry", reason=result.reason, retry_in_seconds=round(pause, 1))


def _log_about(result: DeliveryUpdate) -> Log:
    delivery, attempt = result.delivery, result.attempt
    log = get_log().bind(
        idempotency_key=delivery.idempotency_key,
        id=delivery.job_id,
        delivery_id=delivery.id,
        host=delivery.host,
        **trace_headers(delivery.traceparent),
    )
    if attempt is None:
        return log
    return log.bind(
        attempt=delivery.retry_count + 1, status_code=attempt.status_code, seconds=attempt.duration.total_seconds()
    )


def _refused(result: DeliveryUpdate, error: str) -> bool:
    # A bug, not a lost lease; but to the row it is the same: its lease ends, and it is tried again.
    get_log().error("record_refused", idempotency_key=result.delivery.idempotency_key, error=error)
    return False


def log_if_late(delivery: Delivery, delivered_at: datetime) -> bool:
    """Log a delivery that succeeded more than a minute after its due moment. Returns whether it did."""
    lateness = delivered_at - delivery.due_at
    if lateness <= LATE_AFTER:
        return False
    minutes = lateness.total_seconds() / 60
    get_log().warning(
        "delivered_late",
        idempotency_key=delivery.idempotency_key,
        id=delivery.job_id,
        due_at=format_instant(delivery.due_at),
        delivered_at=format_instant(delivered_at),
        late_minutes=int(minutes),
        late_hours=round(minutes / 60, 1),
        reason=main_cause_of_lateness(delivery, delivered_at),
        **trace_headers(delivery.traceparent),
    )
    return True


def main_cause_of_lateness(delivery: Delivery, delivered_at: datetime) -> str:
    """Name the part of the way that took most of the time."""
    shares = {
        "recovery from downtime": delivery.fired_at - delivery.due_at,
        "waited in the queue": delivery.created_at - delivery.fired_at,
        "retries" if delivery.retry_count else "waited for its turn": delivered_at - delivery.created_at,
    }
    return max(shares, key=lambda reason: shares[reason])
