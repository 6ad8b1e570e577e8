"""Deciding what a due job does now: which occurrences ring, which are dropped, and what comes after. Pure.

A claim handles a bounded number of occurrences of one job, so that a rule with a year to catch up on takes its turns
like everybody else; what is left over is due again at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.messages import Misfire
from shared.recurrence import Occurrence, Rule, RuleSpec, compile_rule

# Occurrences of one job per claim.
BURST = 20


@dataclass(frozen=True, slots=True)
class DueJob:
    """A claimed row: locked until the transaction ends."""

    id: str
    version: int
    topic: str
    payload: str | None
    webhook: str | None
    rule: str | None
    occurrence: Occurrence
    misfire: Misfire
    misfire_grace: timedelta
    sequence: int
    refusals: int
    traceparent: str | None = None
    trigger_id: str | None = None  # a firing outside the rule, with a row and a sequence of its own


@dataclass(frozen=True, slots=True)
class Plan:
    """`ringing` in order, then the job moves on to `then`, or is done if there is nothing more."""

    ringing: tuple[Occurrence, ...]
    dropped: bool
    then: Occurrence | None


def plan(job: DueJob, now: datetime, enough: Callable[[], bool] = lambda: False) -> Plan:
    """`enough` ends a burst early, after one occurrence at least: some rules take milliseconds for each.

    BadRule if the stored rule can no longer be read (a zone that the time zone database gave up, say).
    """
    misfired_before = now - job.misfire_grace
    if job.rule is None:
        dropped = job.misfire is Misfire.SKIP and job.occurrence.at < misfired_before
        return Plan(() if dropped else (job.occurrence,), dropped, None)

    rule = compile_rule(RuleSpec.from_json(job.rule))
    start = job.occurrence
    if job.misfire is Misfire.ALL or start.at >= misfired_before:
        return _burst(rule, start, now, enough)

    latest = rule.latest_before(start, misfired_before)
    following = rule.next_after(latest)
    if following is not None and following.at < misfired_before:
        # The search was cut short by its bound on work: keep what it found, go on with the next claim. Always a step
        # further: a search that found nothing at all would find nothing the next time, too.
        return Plan((), dropped=True, then=latest if latest != start else following)
    if job.misfire is Misfire.LATEST:
        return Plan((latest,), dropped=latest != start, then=following)
    return Plan((), dropped=True, then=following)


def _burst(rule: Rule, start: Occurrence, now: datetime, enough: Callable[[], bool]) -> Plan:
    ringing = [start]
    upcoming = rule.next_after(start)
    while upcoming is not None and upcoming.at <= now and len(ringing) < BURST and not enough():
        ringing.append(upcoming)
        upcoming = rule.next_after(upcoming)
    return Plan(tuple(ringing), dropped=False, then=upcoming)
