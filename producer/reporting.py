"""Reports each fired claim in metrics and logs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from producer.decisions.plan import PlannedFiring
from producer.metrics import Metrics
from producer.store.lanes import Lane
from shared.amqp.message import PublishResult
from shared.contract.fields import format_instant, idempotency_key, trace_headers
from shared.recurrence import Occurrence
from shared.runtime.lateness import LATE_AFTER
from shared.runtime.logs import Log, get_log
from shared.runtime.loops import LoopYielder


@dataclass(frozen=True, slots=True)
class FiredClaim:
    """A claim that was published: its firings, and the verdicts on their messages."""

    lane: Lane
    firings: Sequence[PlannedFiring]
    verdicts: Sequence[PublishResult]
    channel_closed: bool  # the broker closed the channel over one of them
    published_at: datetime


async def report(metrics: Metrics, fired: FiredClaim, yielder: LoopYielder) -> None:
    """Count and log what became of a claim. Called after its commit: only then is it true."""
    counts = Counter(fired.verdicts)
    metrics.due.inc(counts.pop(PublishResult.CONFIRMED, 0))
    for verdict, count in counts.items():
        metrics.not_published[verdict].inc(count)
    if counts:
        get_log().warning("not_published", lane=fired.lane.name, count=counts.total(), verdicts=sorted(counts))
    log = get_log().bind()  # once: it takes a quarter of what a line takes
    put_off = misfired = late = 0
    for firing in fired.firings:
        if yielder.is_due:  # a claim of a thousand that are late is a thousand lines
            await yielder.give_way()
        if firing.plan is None:
            put_off += 1
            continue
        if firing.plan.dropped:
            misfired += 1
            _log_misfire(firing)
        for occurrence, verdict in zip(firing.plan.ringing, fired.verdicts[firing.messages], strict=True):
            if verdict is not PublishResult.CONFIRMED:
                continue
            lateness = fired.published_at - occurrence.at
            metrics.lateness.observe(lateness.total_seconds())
            if lateness > LATE_AFTER:
                late += 1
                _log_late(log, firing, occurrence, lateness)
    metrics.put_off.inc(put_off)
    metrics.misfired.inc(misfired)
    metrics.late.inc(late)


def _log_misfire(firing: PlannedFiring) -> None:
    get_log().info(
        "misfire_dropped",
        id=firing.job.id,
        policy=firing.job.misfire,
        due_at=format_instant(firing.job.occurrence.at),
        **trace_headers(firing.job.traceparent),
    )


def _log_late(log: Log, firing: PlannedFiring, occurrence: Occurrence, lateness: timedelta) -> None:
    log.warning(
        "fired_late",
        id=firing.job.id,
        idempotency_key=idempotency_key(firing.job.id, occurrence.at, firing.job.topic, firing.job.trigger_id),
        due_at=format_instant(occurrence.at),
        late_seconds=round(lateness.total_seconds(), 1),
        **trace_headers(firing.job.traceparent),
    )
