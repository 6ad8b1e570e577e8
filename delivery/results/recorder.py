"""Records how attempts ended, in batches: updates that arrive while one batch is being written form the next batch. An
update that cannot be written is kept and tried again. Until it is written, the local queue counts its row as unwritten,
and too many unwritten rows stop new calls. So memory stays bounded while Postgres is down.
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
from shared.contract.history import HistoryLevel
from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.postgres.pool import ACQUIRE_TIMEOUT, Pool, store_together_or_one_by_one
from shared.runtime.backoff import Backoff
from shared.runtime.fault_points import Point, reached
from shared.runtime.lateness import LATE_AFTER, Stage
from shared.runtime.limited_lines import LimitedLines
from shared.runtime.logs import Log, get_log
from shared.runtime.loops import waiting_outside

RECORD_BATCH_ROWS = 500


@dataclass(slots=True)
class Recorder:
    """Writes updates of deliveries to Postgres, and wakes the announcer."""

    pool: Pool
    metrics: Metrics
    announcer: Announcer
    history: HistoryLevel = HistoryLevel.ALL
    late_lines: LimitedLines = field(default_factory=LimitedLines)
    _submitted: list[DeliveryUpdate] = field(default_factory=list)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: bool = False

    def write_summary(self) -> None:
        """Write a line about the late deliveries that have no lines of their own."""
        if (late := self.late_lines.take_summary()) is not None:
            get_log().warning(
                "delivered_late_summary",
                count=late.count,
                by_reason=late.by_reason,
                oldest_id=late.oldest_id,
                oldest_due_at=late.oldest_due_at,
                late_seconds=late.late_seconds,
            )

    def submit(self, update: DeliveryUpdate) -> None:
        """Hand an update over to `run`, which writes it in one of its next batches."""
        self._submitted.append(update)
        self._arrived.set()

    def close(self) -> None:
        """Let `run` end when all submitted updates are written. No update may be submitted after this call."""
        self._closing = True
        self._arrived.set()

    async def run(self, on_written: Callable[[Sequence[DeliveryUpdate]], None]) -> None:
        """Write submitted updates until `close`. It calls `on_written` after each batch: its updates are committed, or
        void because another process owned the deliveries.
        """
        backoff = Backoff()
        while True:
            with waiting_outside():
                await self._arrived.wait()
            batch, self._submitted = self._submitted[:RECORD_BATCH_ROWS], self._submitted[RECORD_BATCH_ROWS:]
            if not batch:
                if self._closing:
                    return
                self._arrived.clear()
                continue
            try:
                await self._write(batch)
                backoff.reset()
            except RETRYABLE_ERRORS as error:
                self._submitted = batch + self._submitted
                pause = backoff.next_pause()
                get_log().warning("recording_waits", error=describe(error), retry_in_seconds=round(pause, 1))
                await asyncio.sleep(pause)
                continue
            on_written(batch)

    async def _write(self, updates: Sequence[DeliveryUpdate]) -> None:
        written = await store_together_or_one_by_one(
            updates,
            self._write_together,
            _refused,
            self.metrics.split_batches.inc,
        )
        reached(Point.DELIVERY_RECORDED)
        self.announcer.wake()
        ended = [update.status for update, kept in zip(updates, written, strict=True) if kept]
        self.metrics.completed.inc(ended.count(DeliveryStatus.COMPLETED))
        in_detail = get_log().is_enabled_for(logging.DEBUG)
        for update, kept in zip(updates, written, strict=True):
            try:
                self._observe(update, kept=kept, in_detail=in_detail)
            except Exception as error:  # noqa: BLE001 - the update is committed: a failing log line must not repeat it
                get_log().error("observing_failed", error_type=type(error).__name__)

    async def _write_together(self, updates: Sequence[DeliveryUpdate]) -> list[bool]:
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            held = await record(connection, updates, self.history)
        return [(update.delivery.id, update.delivery.version) in held for update in updates]

    def _observe(self, update: DeliveryUpdate, *, kept: bool, in_detail: bool) -> None:
        """Count an update and log it. Most updates need no log line. A log is bound only where a line is written,
        because binding takes longer than the rest of this method.
        """
        delivery, attempt = update.delivery, update.attempt
        if not kept:
            self.metrics.leases_lost.inc()
            _log_about(update).warning("lease_lost", dropped=update.status)
            return
        if attempt is None:
            self.metrics.given_back.inc()
            _log_about(update).info("given_back", reason=update.reason)
            return
        if delivery.retry_count == 0:
            self.metrics.lateness[Stage.FIRST_ATTEMPT].observe((attempt.started_at - delivery.due_at).total_seconds())
        match update.status:
            case DeliveryStatus.COMPLETED:
                if in_detail:
                    _log_about(update).debug("delivered")
                delivered_at = attempt.started_at + attempt.duration
                self.metrics.lateness[Stage.DELIVERED].observe((delivered_at - delivery.due_at).total_seconds())
                if log_if_late(delivery, delivered_at, self.late_lines):
                    self.metrics.late.inc()
            case DeliveryStatus.FAILED:
                self.metrics.failed.inc()
                _log_about(update).warning("delivery_failed", reason=update.reason)
            case _:
                self.metrics.retries.inc()
                pause = update.pause.total_seconds() if update.pause is not None else 0.0
                _log_about(update).info("delivery_retry", reason=update.reason, retry_in_seconds=round(pause, 1))


def _log_about(update: DeliveryUpdate) -> Log:
    delivery, attempt = update.delivery, update.attempt
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


def _refused(update: DeliveryUpdate, error: str) -> bool:
    # This is a bug and no lost lease, with the same effect on the row: its lease ends, and it is called again.
    get_log().error("record_refused", idempotency_key=update.delivery.idempotency_key, error=error)
    return False


def log_if_late(delivery: Delivery, delivered_at: datetime, lines: LimitedLines) -> bool:
    """Log a delivery that succeeded more than a minute after its due moment, or leave it to the next summary. Returns
    whether it was late.
    """
    lateness = delivered_at - delivery.due_at
    if lateness <= LATE_AFTER:
        return False
    reason = main_cause_of_lateness(delivery, delivered_at)
    if not lines.add(delivery.job_id, delivery.due_at, lateness, reason):
        return True
    minutes = lateness.total_seconds() / 60
    get_log().warning(
        "delivered_late",
        idempotency_key=delivery.idempotency_key,
        id=delivery.job_id,
        due_at=format_instant(delivery.due_at),
        delivered_at=format_instant(delivered_at),
        late_minutes=int(minutes),
        late_hours=round(minutes / 60, 1),
        reason=reason,
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
