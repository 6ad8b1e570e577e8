"""Tests what a due job does: which occurrences it publishes and drops, and which one comes next."""

from datetime import UTC, datetime, timedelta

import pytest

from producer.decisions.plan import MAX_TURN_OCCURRENCES, Plan, plan
from shared.contract.messages import Misfire
from shared.recurrence import BadRule, Occurrence, RuleSpec
from tests.support.builders import NOON, a_due_job, minutely

MINUTE = timedelta(minutes=1)


def minutes(plan: Plan) -> list[float]:
    """Return the occurrences to publish, in minutes after noon."""
    return [(occurrence.at - NOON) / MINUTE for occurrence in plan.publish_now]


def test_a_one_shot_is_published_and_is_done() -> None:
    assert plan(a_due_job(), NOON) == Plan((Occurrence(NOON, 1),), False, None)


@pytest.mark.parametrize("policy", [Misfire.ALL, Misfire.LATEST])
def test_a_late_one_shot_is_published_under_all_and_latest(policy: Misfire) -> None:
    assert len(plan(a_due_job(misfire=policy), NOON + timedelta(days=1)).publish_now) == 1


def test_a_late_one_shot_is_dropped_under_skip() -> None:
    assert plan(a_due_job(misfire=Misfire.SKIP), NOON + timedelta(seconds=61)) == Plan((), True, None)


def test_a_one_shot_within_its_grace_is_published_under_skip() -> None:
    assert len(plan(a_due_job(misfire=Misfire.SKIP), NOON + timedelta(seconds=60)).publish_now) == 1


def test_a_rule_on_time_publishes_one_occurrence_and_moves_on() -> None:
    planned = plan(a_due_job(rule=minutely()), NOON)
    assert minutes(planned) == [0]
    assert planned.next is not None
    assert planned.next.at == NOON + MINUTE


def test_under_all_every_missed_occurrence_is_published_in_order() -> None:
    planned = plan(a_due_job(rule=minutely()), NOON + 5.5 * MINUTE)
    assert minutes(planned) == [0, 1, 2, 3, 4, 5]
    assert planned.next is not None
    assert planned.next.at == NOON + 6 * MINUTE


def test_a_long_catch_up_takes_turns() -> None:
    planned = plan(a_due_job(rule=minutely()), NOON + timedelta(days=1))
    assert len(planned.publish_now) == MAX_TURN_OCCURRENCES
    assert planned.next is not None
    assert planned.next.at == NOON + MAX_TURN_OCCURRENCES * MINUTE, "the next turn begins where this one ends"


def test_a_turn_ends_early_when_it_is_out_of_time() -> None:
    planned = plan(a_due_job(rule=minutely()), NOON + timedelta(days=1), is_out_of_time=lambda: True)
    assert minutes(planned) == [0], "at least one occurrence"
    assert planned.next is not None
    assert planned.next.at == NOON + MINUTE


def test_under_latest_only_the_last_late_occurrence_is_published() -> None:
    """The job is ten and a half minutes late, with a grace of one: the tenth minute is within its grace, and comes
    next.
    """
    planned = plan(a_due_job(rule=minutely(), misfire=Misfire.LATEST), NOON + 10.5 * MINUTE)
    assert minutes(planned) == [9]
    assert planned.dropped
    assert planned.next is not None
    assert planned.next.at == NOON + 10 * MINUTE


def test_under_latest_a_single_late_occurrence_is_published_and_none_is_dropped() -> None:
    planned = plan(a_due_job(rule=minutely(), misfire=Misfire.LATEST), NOON + 1.5 * MINUTE)
    assert minutes(planned) == [0]
    assert not planned.dropped


def test_under_skip_late_occurrences_are_dropped_and_the_rule_goes_on() -> None:
    planned = plan(a_due_job(rule=minutely(), misfire=Misfire.SKIP), NOON + 10.5 * MINUTE)
    assert planned.publish_now == ()
    assert planned.dropped
    assert planned.next is not None
    assert planned.next.at == NOON + 10 * MINUTE


def test_under_skip_a_rule_that_ended_meanwhile_is_done() -> None:
    rule = minutely(rrule="FREQ=MINUTELY;COUNT=3")
    planned = plan(a_due_job(rule=rule, misfire=Misfire.SKIP), NOON + timedelta(days=1))
    assert planned == Plan((), True, None)


def test_under_latest_a_rule_that_ended_meanwhile_publishes_its_last_occurrence() -> None:
    rule = minutely(rrule="FREQ=MINUTELY;COUNT=3")
    planned = plan(a_due_job(rule=rule, misfire=Misfire.LATEST), NOON + timedelta(days=1))
    assert minutes(planned) == [2]
    assert planned.next is None


@pytest.mark.parametrize("policy", [Misfire.LATEST, Misfire.SKIP])
def test_a_counted_rule_far_behind_catches_up_in_bounded_steps(policy: Misfire) -> None:
    rule = minutely(rrule="FREQ=SECONDLY;COUNT=1000000")
    now = NOON + timedelta(hours=3)
    job, steps = a_due_job(rule=rule, misfire=policy), 0
    while (planned := plan(job, now)).next is not None and planned.next.at < now - job.misfire_grace:
        assert planned.publish_now == (), "no occurrence is published on the way"
        assert planned.next.at > job.occurrence.at, "every step moves forward"
        job, steps = a_due_job(rule=rule, misfire=policy, occurrence=planned.next), steps + 1
    assert steps < 20
    assert len(planned.publish_now) == (1 if policy is Misfire.LATEST else 0)


def test_a_rule_that_can_no_longer_be_read_raises_bad_rule() -> None:
    rule = RuleSpec(start_at="2030-06-01T12:00:00Z", timezone="Europe/Atlantis", rrule="FREQ=DAILY").to_json()
    with pytest.raises(BadRule):
        plan(a_due_job(rule=rule), NOON)


@pytest.mark.parametrize("policy", Misfire)
@pytest.mark.parametrize(("end", "cut_short"), [("", True), (";UNTIL=20190216T110000Z", False)])
def test_a_rule_that_ends_at_the_bound_of_the_search_is_cut_short(policy: Misfire, end: str, cut_short: bool) -> None:
    rule = RuleSpec("2019-01-15T09:00:00", "America/Sao_Paulo", rrule=f"FREQ=HOURLY;INTERVAL=24;BYHOUR=9{end}")
    last = Occurrence(datetime(2019, 2, 16, 11, tzinfo=UTC), 33)
    planned = plan(a_due_job(rule=rule.to_json(), occurrence=last, misfire=policy), NOON)
    assert planned.next is None
    assert planned.cut_short == cut_short
