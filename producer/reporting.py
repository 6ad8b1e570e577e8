"""What a fired claim leaves in metrics and logs. Called after its commit: only then is it true."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from producer.metrics import Metrics
from producer.settling import Shot
from producer.store import Lane
from shared.breath import Breath
from shared.idempotency import idempotency_key
from shared.instants import format_instant
from shared.logs import Log, get_log
from shared.outgoing import Verdict
from shared.recurrence import Occurrence
from shared.tracing import trace_headers

LATE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Volley:
    """A claim's shots, and what the broker said to them."""

    lane: Lane
    shots: Sequence[Shot]
    verdicts: Sequence[Verdict]
    published_at: datetime


async def report(metrics: Metrics, volley: Volley, breath: Breath) -> None:
    counts = Counter(volley.verdicts)
    metrics.due.inc(counts.pop(Verdict.CONFIRMED, 0))
    for verdict, count in counts.items():
        metrics.not_published[verdict].inc(count)
    if counts:
        get_log().warning("not_published", lane=volley.lane.name, count=counts.total(), verdicts=sorted(counts))
    log = get_log().bind()  # once: it takes a quarter of what a line takes
    for shot in volley.shots:
        if breath.is_due:  # a claim of a thousand that are late is a thousand lines
            await breath.take()
        if shot.plan is None:
            metrics.put_off.inc()
            continue
        if shot.plan.dropped:
            _report_misfire(metrics, shot)
        for occurrence, verdict in zip(shot.plan.ringing, volley.verdicts[shot.messages], strict=True):
            if verdict is Verdict.CONFIRMED:
                _report_lateness(metrics, log, shot, occurrence, volley.published_at - occurrence.at)


def _report_misfire(metrics: Metrics, shot: Shot) -> None:
    metrics.misfired.inc()
    get_log().info(
        "misfire_dropped",
        id=shot.job.id,
        policy=shot.job.misfire,
        due_at=format_instant(shot.job.occurrence.at),
        **trace_headers(shot.job.traceparent),
    )


def _report_lateness(metrics: Metrics, log: Log, shot: Shot, occurrence: Occurrence, lateness: timedelta) -> None:
    metrics.lateness.observe(lateness.total_seconds())
    if lateness > LATE:
        metrics.late.inc()
        log.warning(
            "fired_late",
            id=shot.job.id,
            idempotency_key=idempotency_key(shot.job.id, occurrence.at, shot.job.topic, shot.job.trigger_id),
            due_at=format_instant(occurrence.at),
            late_seconds=round(lateness.total_seconds(), 1),
            **trace_headers(shot.job.traceparent),
        )
