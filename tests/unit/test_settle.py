"""Tests how publish results decide the next state of a row."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from producer.decisions.plan import DueJob, Plan, plan
from producer.decisions.settle import (
    JobUpdate,
    attribute,
    next_claim_size,
    postpone_unreadable,
    settle,
)
from shared.amqp.message import PublishResult
from shared.contract.job_status import JobStatus
from shared.recurrence import Occurrence
from tests.support.builders import NOON, a_due_job, minutely

CONFIRMED, NACKED, RETURNED, UNKNOWN, CLOSED = (
    PublishResult.CONFIRMED,
    PublishResult.NACKED,
    PublishResult.RETURNED,
    PublishResult.UNKNOWN,
    PublishResult.CLOSED,
)
NOTHING_MORE = Plan((Occurrence(NOON, 1),), dropped=False, next=None)


def settled(job: DueJob, planned: Plan, *results: PublishResult) -> JobUpdate:
    update = settle(job, planned, results)
    assert update is not None
    return update


def test_a_confirmed_one_shot_is_done() -> None:
    row = settled(a_due_job(), NOTHING_MORE, CONFIRMED)
    assert (row.status, row.next, row.sequence, row.last_due_at) == (JobStatus.DONE, None, 1, NOON)


def test_a_fired_one_shot_is_settled_like_any_other_row() -> None:
    """A one-shot has code and SQL of its own; a rule that ends with this occurrence takes the general way."""
    job = a_due_job(refusals=7, sequence=3, version=5)
    short = settle(job, NOTHING_MORE, [CONFIRMED])
    long = settle(replace(job, rule=minutely()), NOTHING_MORE, [CONFIRMED])
    assert short is not None
    assert long is not None
    assert (short.fired_only_occurrence, long.fired_only_occurrence) == (True, False)
    assert replace(short, fired_only_occurrence=False) == long


@pytest.mark.parametrize("result", [NACKED, RETURNED, CLOSED])
def test_a_refused_one_shot_keeps_its_moment_and_waits(result: PublishResult) -> None:
    row = settled(a_due_job(), NOTHING_MORE, result)
    assert (row.status, row.next, row.sequence) == (JobStatus.PENDING, Occurrence(NOON, 1), 0)
    assert (row.refusals, row.pause) == (1, timedelta(seconds=1))


def test_an_unknown_publish_result_leaves_the_row_unchanged() -> None:
    assert settle(a_due_job(), NOTHING_MORE, [UNKNOWN]) is None


def test_a_rule_waits_for_its_first_occurrence_that_was_not_confirmed() -> None:
    planned = plan(a_due_job(rule=minutely()), NOON + timedelta(minutes=3))
    row = settled(a_due_job(rule=minutely()), planned, CONFIRMED, CONFIRMED, NACKED, CONFIRMED)
    assert row.next == planned.publish_now[2]
    assert (row.sequence, row.last_due_at) == (2, NOON + timedelta(minutes=1))
    assert row.refusals == 1


def test_occurrences_confirmed_before_an_unknown_one_count() -> None:
    planned = plan(a_due_job(rule=minutely()), NOON + timedelta(minutes=1))
    row = settled(a_due_job(rule=minutely()), planned, CONFIRMED, UNKNOWN)
    assert (row.next, row.sequence, row.pause, row.refusals) == (planned.publish_now[1], 1, None, 0)


def test_a_dropped_occurrence_is_settled_without_a_publish() -> None:
    row = settled(a_due_job(), Plan((), dropped=True, next=None))
    assert (row.status, row.sequence, row.last_due_at) == (JobStatus.DONE, 0, None)


def test_a_confirmed_publish_resets_the_refusals() -> None:
    assert settled(a_due_job(refusals=7), NOTHING_MORE, CONFIRMED).refusals == 0


def test_a_job_whose_rule_is_unreadable_keeps_its_occurrence_and_waits() -> None:
    row = postpone_unreadable(a_due_job(refusals=2, sequence=5))
    assert (row.next, row.sequence, row.refusals, row.pause) == (Occurrence(NOON, 1), 5, 3, timedelta(seconds=4))


def test_a_closed_channel_stays_closed_in_a_claim_of_one_job() -> None:
    assert attribute([CONFIRMED, CLOSED, CLOSED], jobs=1) == [CONFIRMED, CLOSED, CLOSED]


def test_a_closed_channel_counts_as_unknown_in_a_claim_of_several_jobs() -> None:
    given = [CONFIRMED, CLOSED, NACKED, RETURNED, UNKNOWN]
    assert attribute(given, jobs=2) == [CONFIRMED, UNKNOWN, NACKED, RETURNED, UNKNOWN]
    assert given[1] is CLOSED, "the broker's own results stay as they are"


@pytest.mark.parametrize(("rows", "expected"), [(1, 2), (100, 200), (400, 500), (500, 500)])
def test_claims_grow_up_to_a_limit_while_all_goes_well(rows: int, expected: int) -> None:
    assert next_claim_size(rows, 500, channel_closed=False) == expected


def test_after_a_closed_channel_claims_are_of_one_row() -> None:
    assert next_claim_size(400, 500, channel_closed=True) == 1
