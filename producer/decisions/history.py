"""What the history tells of a fired claim. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import orjson

from producer.decisions.plan import DueJob, PlannedFiring
from shared.amqp.message import PUBLISHED, PublishResult
from shared.contract.history import HistoryEntry, HistoryLevel, What, is_kept
from shared.contract.names import due_routing_key
from shared.recurrence import Occurrence

NONE: Mapping[str, object] = {}

_FIRED = {PublishResult.CONFIRMED: What.FIRED, PublishResult.UNROUTED: What.UNROUTED}


def tell_firings(
    firings: Sequence[PlannedFiring], results: Sequence[PublishResult], published_at: datetime, level: HistoryLevel
) -> Iterator[HistoryEntry]:
    """Tell of each job what was dropped, published and refused, in the order of its occurrences. Of what was published
    as planned no entry is made that the level leaves out: there is one for each job.

    Occurrences after one that is not published are left out: they will be published again.
    """
    told = {result: what for result, what in _FIRED.items() if is_kept(what, level)}
    for firing in firings:
        job, plan = firing.job, firing.plan
        if plan is None:
            yield from _tell_refusal(job, job.occurrence, {"reason": "the rule cannot be read"})
            continue
        if plan.dropped:
            yield _entry(job, What.DROPPED, job.occurrence, details={"misfire": job.misfire})
        sequence, all_published = job.sequence, True
        for occurrence, result in zip(plan.publish_now, results[firing.messages], strict=True):
            if result not in PUBLISHED:
                all_published = False
                if result is not PublishResult.UNKNOWN:
                    yield from _tell_refusal(job, occurrence, {"reason": result, "routing_key": _routing_key(job)})
                break
            sequence += 1
            if result in told:
                details = {"routing_key": _routing_key(job)} if result is PublishResult.UNROUTED else {}
                yield _entry(job, told[result], occurrence, at=published_at, sequence=sequence, details=details)
        if all_published and plan.next is None and job.rule is not None:
            yield _entry(job, What.ENDED)


def _tell_refusal(job: DueJob, occurrence: Occurrence, details: Mapping[str, object]) -> Iterator[HistoryEntry]:
    """Tell of the 1st, 2nd, 4th, 8th … refusal in a row: a queue that is full for weeks does not fill the history."""
    refusals = job.refusals + 1
    if refusals & (refusals - 1) == 0:
        yield _entry(job, What.REFUSED, occurrence, details={**details, "refusals": refusals})


def _routing_key(job: DueJob) -> str:
    return due_routing_key(job.topic, has_webhook=job.webhook is not None)


def _entry(  # noqa: PLR0913 - the columns of an entry, by name
    job: DueJob,
    what: What,
    occurrence: Occurrence | None = None,
    *,
    at: datetime | None = None,
    sequence: int | None = None,
    details: Mapping[str, object] = NONE,
) -> HistoryEntry:
    if job.trigger_id is not None:
        details = {**details, "trigger_id": job.trigger_id}
    return HistoryEntry(
        job.id,
        what,
        at=at,
        life=job.life,
        sequence=sequence,
        due_at=occurrence.at if occurrence else None,
        details=orjson.dumps(details).decode() if details else None,
    )
