"""Decides what a due job does now: which occurrences are published, which are dropped, and which one comes next. Pure.

A claim publishes a bounded number of occurrences of one job, its turn. A rule with a year to catch up on so takes turns
with all other jobs: its remaining occurrences wait behind jobs that are due.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from shared.contract.messages import Misfire
from shared.recurrence import Occurrence, Rule, RuleSpec, compile_rule

# How many occurrences of one job a turn may have.
MAX_TURN_OCCURRENCES = 20
# Rules are cached by their text: reading a rule takes as long as firing two jobs. A rule of this length takes 2 KB.
# Rules with a long list of dates are left to the smaller cache of shared.recurrence.
MAX_REMEMBERED_LENGTH = 500


class DueJob(msgspec.Struct, frozen=True, gc=False):
    """A claimed row of a job, or of a trigger. It is locked until the claim's transaction ends.

    A struct and not a dataclass, because a producer makes thousands of them a second.
    """

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
    life: int = 1  # of the id; of a trigger, the life in which it was asked for
    asked_late: bool = False  # a one-shot that was asked for, or resumed, after its moment


class Plan(msgspec.Struct, frozen=True, gc=False):
    """What a job does now. The occurrences of `publish_now` are published in order. Then the job waits for `next`, or
    is done if that is None.
    """

    publish_now: tuple[Occurrence, ...]
    dropped: bool  # the misfire policy drops at least one late occurrence
    next: Occurrence | None
    next_is_due: bool = False
    # The job is done because the search for its next occurrence reached its bound. The rule may have one beyond that.
    cut_short: bool = False


class PlannedFiring(msgspec.Struct, frozen=True, gc=False):
    """One job of a claim, its plan, and the place of its events among the claim's messages."""

    job: DueJob
    plan: Plan | None  # None: its rule cannot be read
    messages: slice


def plan(job: DueJob, now: datetime, is_out_of_time: Callable[[], bool] = lambda: False) -> Plan:
    """Plan the job. `is_out_of_time` ends its turn early, after one occurrence at least: some rules take milliseconds
    to find each next one.

    Raises BadRule if the stored rule can no longer be read, for example because the time zone database dropped its
    zone.
    """
    if job.rule is None:
        dropped = job.misfire is Misfire.SKIP and job.occurrence.at < now - job.misfire_grace
        return Plan(() if dropped else (job.occurrence,), dropped, None)

    rule = _read_rule(job.rule)
    start, misfired_before = job.occurrence, now - job.misfire_grace
    if job.misfire is Misfire.ALL or start.at >= misfired_before:
        return _plan_turn(rule, start, now, is_out_of_time)

    latest = rule.latest_before(start, misfired_before)
    following = rule.next_after(latest)
    if following is not None and following.at < misfired_before:
        # The search reached its bound on work: keep the occurrence it found, and go on with the next claim. Always move
        # forward: a search that found nothing at all would find nothing the next time, too.
        return Plan((), dropped=True, next=latest if latest != start else following, next_is_due=True)
    if job.misfire is Misfire.LATEST:
        return _complete(rule, latest, Plan((latest,), latest != start, following), now)
    return _complete(rule, latest, Plan((), dropped=True, next=following), now)


def _complete(rule: Rule, last: Occurrence, plan: Plan, now: datetime) -> Plan:
    """Set `next_is_due` or `cut_short` of a plan. `last` is the occurrence before `plan.next`."""
    if plan.next is None:
        return replace(plan, cut_short=rule.is_cut_short(last))
    return replace(plan, next_is_due=True) if plan.next.at <= now else plan


def _read_rule(text: str) -> Rule:
    return _read_short_rule(text) if len(text) <= MAX_REMEMBERED_LENGTH else compile_rule(RuleSpec.from_json(text))


@lru_cache(maxsize=4096)
def _read_short_rule(text: str) -> Rule:
    return compile_rule(RuleSpec.from_json(text))


def _plan_turn(rule: Rule, start: Occurrence, now: datetime, is_out_of_time: Callable[[], bool]) -> Plan:
    """Plan to publish every occurrence that is due, in order, up to the length of a turn."""
    due = [start]
    upcoming = rule.next_after(start)
    while upcoming is not None and upcoming.at <= now and len(due) < MAX_TURN_OCCURRENCES and not is_out_of_time():
        due.append(upcoming)
        upcoming = rule.next_after(upcoming)
    return _complete(rule, due[-1], Plan(tuple(due), dropped=False, next=upcoming), now)
