"""Reports each fired claim in metrics and log lines. A catch-up writes some lines and summaries, not a line for each of
thousands of late occurrences: that took two thirds of the time of firing them.
"""

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from producer.decisions.plan import DueJob, PlannedFiring
from producer.metrics import Metrics
from producer.store.lanes import Lane
from shared.amqp.message import PUBLISHED, PublishResult
from shared.contract.fields import format_instant, idempotency_key, trace_headers
from shared.contract.names import due_routing_key
from shared.recurrence import Occurrence
from shared.runtime.lateness import LATE_AFTER
from shared.runtime.limited_lines import LimitedLines
from shared.runtime.logs import Log, get_log
from shared.runtime.loops import LoopYielder


@dataclass(frozen=True, slots=True)
class FiredClaim:
    """A claim after its publish: its firings, and the publish results of their events."""

    lane: Lane
    firings: Sequence[PlannedFiring]
    results: Sequence[PublishResult]
    published_at: datetime


@dataclass(slots=True)
class ReportedLines:
    """Which late and which dropped occurrences have log lines of their own. All Firers of a process share one."""

    late: LimitedLines = field(default_factory=LimitedLines)
    misfires: LimitedLines = field(default_factory=LimitedLines)

    def write_summaries(self) -> None:
        """Write a line about the occurrences that have no lines of their own."""
        if (late := self.late.take_summary()) is not None:
            get_log().warning(
                "fired_late_summary",
                count=late.count,
                by_reason=late.by_reason,
                oldest_id=late.oldest_id,
                oldest_due_at=late.oldest_due_at,
                late_seconds=late.late_seconds,
            )
        if (dropped := self.misfires.take_summary()) is not None:
            get_log().info(
                "misfire_dropped_summary",
                count=dropped.count,
                by_reason=dropped.by_reason,
                oldest_id=dropped.oldest_id,
                oldest_due_at=dropped.oldest_due_at,
                late_seconds=dropped.late_seconds,
            )


async def report(metrics: Metrics, lines: ReportedLines, fired: FiredClaim, yielder: LoopYielder) -> None:
    """Count and log the results of a claim. Call it after the claim's commit: only then are they final."""
    _count_results(metrics, fired)
    log = get_log().bind()  # once per claim: binding takes a quarter of the time of a line
    unreadable = misfired = late = 0
    for firing in fired.firings:
        if yielder.is_due:  # a claim of a thousand late jobs writes a thousand lines
            await yielder.give_way()
        if firing.plan is None:
            unreadable += 1
            continue
        if firing.plan.dropped:
            misfired += 1
            job = firing.job
            late_by = fired.published_at - job.occurrence.at
            if lines.misfires.add(job.id, job.occurrence.at, late_by, job.misfire):
                _log_misfire(firing)
        for occurrence, result in zip(firing.plan.publish_now, fired.results[firing.messages], strict=True):
            if result not in PUBLISHED:
                continue
            lateness = fired.published_at - occurrence.at
            metrics.lateness.observe(lateness.total_seconds())
            if lateness > LATE_AFTER:
                late += 1
                reason = reason_of_lateness(firing.job)
                if lines.late.add(firing.job.id, occurrence.at, lateness, reason):
                    _log_late(log, firing, occurrence, lateness, reason)
    metrics.unreadable.inc(unreadable)
    metrics.misfired.inc(misfired)
    metrics.late.inc(late)


def reason_of_lateness(job: DueJob) -> str:
    """Name what an application needs to know: whose fault it is that the job is late."""
    if job.refusals:
        return "refused by the broker"
    if job.asked_late:
        return "asked for a moment in the past"
    return "overdue"


def _count_results(metrics: Metrics, fired: FiredClaim) -> None:
    counts = Counter(fired.results)
    unrouted = counts.pop(PublishResult.UNROUTED, 0)
    metrics.due.inc(counts.pop(PublishResult.CONFIRMED, 0) + unrouted)
    if unrouted:
        metrics.unrouted.inc(unrouted)
        _log_unrouted(fired, unrouted)
    for result, count in counts.items():
        metrics.not_published[result].inc(count)
    if counts:
        _log_not_published(fired, counts)


def _log_not_published(fired: FiredClaim, counts: Counter[PublishResult]) -> None:
    """Log one line for the claim, with one of the events that the broker did not confirm."""
    job = _first_with(fired, counts.keys())
    get_log().warning(
        "not_published",
        lane=fired.lane.name,
        count=counts.total(),
        verdicts=sorted(counts),
        id=job.id,
        routing_key=_routing_key(job),
        **trace_headers(job.traceparent),
    )


def _log_unrouted(fired: FiredClaim, count: int) -> None:
    """Log one line for the claim, with one of the events that no queue was bound for."""
    job = _first_with(fired, {PublishResult.UNROUTED})
    get_log().warning(
        "unrouted", count=count, id=job.id, routing_key=_routing_key(job), **trace_headers(job.traceparent)
    )


def _first_with(fired: FiredClaim, results: Set[PublishResult]) -> DueJob:
    return next(each.job for each in fired.firings if not results.isdisjoint(fired.results[each.messages]))


def _routing_key(job: DueJob) -> str:
    return due_routing_key(job.topic, has_webhook=job.webhook is not None)


def _log_misfire(firing: PlannedFiring) -> None:
    get_log().info(
        "misfire_dropped",
        id=firing.job.id,
        policy=firing.job.misfire,
        due_at=format_instant(firing.job.occurrence.at),
        **trace_headers(firing.job.traceparent),
    )


def _log_late(log: Log, firing: PlannedFiring, occurrence: Occurrence, lateness: timedelta, reason: str) -> None:
    job = firing.job
    log.warning(
        "fired_late",
        id=job.id,
        idempotency_key=idempotency_key(job.id, occurrence.at, job.topic, job.trigger_id, job.life),
        due_at=format_instant(occurrence.at),
        late_seconds=round(lateness.total_seconds(), 1),
        reason=reason,
        **trace_headers(job.traceparent),
    )
