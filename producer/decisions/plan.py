"""Deciding what a due job does now: which occurrences ring, which are dropped, and what comes after. Pure.

A claim handles a bounded number of occurrences of one job, so that a rule with a year to catch up on takes its turns
like all others: what is left over waits behind those that do so, too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from shared.contract.messages import Misfire
from shared.recurrence import Occurrence, Rule, RuleSpec, compile_rule

# Occurrences of one job per claim.
BURST = 20
# Rules by their text: reading one takes as long as firing two jobs. One like this takes 2 KB; those with a long list of
# dates are left to the smaller memory of shared.recurrence.
MAX_REMEMBERED_LENGTH = 500


class DueJob(msgspec.Struct, frozen=True, gc=False):
    """A claimed row: locked until the transaction ends. (A struct: there are thousands a second.)"""

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
class Claim:
    now: datetime  # when the transaction began, by Postgres' clock
    moment: datetime  # at which the jobs are due: now, or a little later
    jobs: list[DueJob]

    @property
    def fires_at(self) -> datetime:
        """The moment; or now, if it has passed while the broker or the database was waited for."""
        return max(self.moment, self.now)

    @property
    def ahead(self) -> float:
        return (self.moment - self.now).total_seconds()


class Plan(msgspec.Struct, frozen=True, gc=False):
    """`ringing` in order, then the job moves on to `then`, or is done if there is nothing more.

    `cut_short`: it is done, although its rule might ring again beyond the reach of the search.
    """

    ringing: tuple[Occurrence, ...]
    dropped: bool
    then: Occurrence | None
    behind: bool = False  # `then` is due already
    cut_short: bool = False


class PlannedFiring(msgspec.Struct, frozen=True, gc=False):
    """One job of a claim, with what it does now and the place of its events among the claim's messages."""

    job: DueJob
    plan: Plan | None  # None: its rule cannot be read
    messages: slice


def plan(job: DueJob, now: datetime, enough: Callable[[], bool] = lambda: False) -> Plan:
    """`enough` ends a burst early, after one occurrence at least: some rules take milliseconds for each.

    BadRule if the stored rule can no longer be read (a zone that the time zone database gave up, say).
    """
    if job.rule is None:
        dropped = job.misfire is Misfire.SKIP and job.occurrence.at < now - job.misfire_grace
        return Plan(() if dropped else (job.occurrence,), dropped, None)

    rule = _read_rule(job.rule)
    start, misfired_before = job.occurrence, now - job.misfire_grace
    if job.misfire is Misfire.ALL or start.at >= misfired_before:
        return _burst(rule, start, now, enough)

    latest = rule.latest_before(start, misfired_before)
    following = rule.next_after(latest)
    if following is not None and following.at < misfired_before:
        # The search was cut short by its bound on work: keep what it found, go on with the next claim. Always a step
        # further: a search that found nothing at all would find nothing the next time, too.
        return Plan((), dropped=True, then=latest if latest != start else following, behind=True)
    if job.misfire is Misfire.LATEST:
        return _going_on(rule, latest, Plan((latest,), latest != start, following), now)
    return _going_on(rule, latest, Plan((), dropped=True, then=following), now)


def _going_on(rule: Rule, last: Occurrence, plan: Plan, now: datetime) -> Plan:
    """The plan with what is to be known about its end; `last` is what came before `then`."""
    if plan.then is None:
        return replace(plan, cut_short=rule.is_cut_short(last))
    return replace(plan, behind=True) if plan.then.at <= now else plan


def _read_rule(text: str) -> Rule:
    return _read_short_rule(text) if len(text) <= MAX_REMEMBERED_LENGTH else compile_rule(RuleSpec.from_json(text))


@lru_cache(maxsize=4096)
def _read_short_rule(text: str) -> Rule:
    return compile_rule(RuleSpec.from_json(text))


def _burst(rule: Rule, start: Occurrence, now: datetime, enough: Callable[[], bool]) -> Plan:
    ringing = [start]
    upcoming = rule.next_after(start)
    while upcoming is not None and upcoming.at <= now and len(ringing) < BURST and not enough():
        ringing.append(upcoming)
        upcoming = rule.next_after(upcoming)
    return _going_on(rule, ringing[-1], Plan(tuple(ringing), dropped=False, then=upcoming), now)
