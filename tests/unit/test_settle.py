"""From verdicts to the row's next state."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from producer.decisions.plan import DueJob, Plan, plan
from producer.decisions.settle import (
    MAX_RETRY_PAUSE,
    JobUpdate,
    attribute,
    next_claim_size,
    pause_after,
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


def settled(job: DueJob, planned: Plan, *verdicts: PublishResult) -> JobUpdate:
    result = settle(job, planned, verdicts)
    assert result is not None
    return result


def test_a_confirmed_one_shot_is_done() -> None:
    row = settled(a_due_job(), NOTHING_MORE, CONFIRMED)
    assert (row.status, row.next, row.sequence, row.last_due_at) == (JobStatus.DONE, None, 1, NOON)


def test_a_one_shot_that_rang_is_settled_as_any_other_row_would_be() -> None:
    """It has a shorter way, through the code and to Postgres; a job by a rule that ends here has not."""
    job = a_due_job(refusals=7, sequence=3, version=5)
    short = settle(job, NOTHING_MORE, [CONFIRMED])
    long = settle(replace(job, rule=minutely()), NOTHING_MORE, [CONFIRMED])
    assert short is not None
    assert long is not None
    assert (short.fired_only_occurrence, long.fired_only_occurrence) == (True, False)
    assert replace(short, fired_only_occurrence=False) == long


@pytest.mark.parametrize("verdict", [NACKED, RETURNED, CLOSED])
def test_a_refused_one_shot_keeps_its_moment_and_waits(verdict: PublishResult) -> None:
    row = settled(a_due_job(), NOTHING_MORE, verdict)
    assert (row.status, row.next, row.sequence) == (JobStatus.PENDING, Occurrence(NOON, 1), 0)
    assert (row.refusals, row.pause) == (1, timedelta(seconds=1))


def test_an_unknown_outcome_leaves_the_row_alone() -> None:
    assert settle(a_due_job(), NOTHING_MORE, [UNKNOWN]) is None


def test_a_rule_stands_at_its_first_occurrence_that_was_not_confirmed() -> None:
    planned = plan(a_due_job(rule=minutely()), NOON + timedelta(minutes=3))
    row = settled(a_due_job(rule=minutely()), planned, CONFIRMED, CONFIRMED, NACKED, CONFIRMED)
    assert row.next == planned.publish_now[2]
    assert (row.sequence, row.last_due_at) == (2, NOON + timedelta(minutes=1))
    assert row.refusals == 1


def test_what_was_confirmed_before_an_unknown_one_counts() -> None:
    planned = plan(a_due_job(rule=minutely()), NOON + timedelta(minutes=1))
    row = settled(a_due_job(rule=minutely()), planned, CONFIRMED, UNKNOWN)
    assert (row.next, row.sequence, row.pause, row.refusals) == (planned.publish_now[1], 1, None, 0)


def test_a_drop_moves_on_without_a_ring() -> None:
    row = settled(a_due_job(), Plan((), dropped=True, next=None))
    assert (row.status, row.sequence, row.last_due_at) == (JobStatus.DONE, 0, None)


def test_success_forgets_earlier_refusals() -> None:
    assert settled(a_due_job(refusals=7), NOTHING_MORE, CONFIRMED).refusals == 0


def test_the_pause_grows_to_a_limit() -> None:
    assert [pause_after(n).total_seconds() for n in (1, 2, 3, 8)] == [1, 2, 4, 128]
    assert pause_after(10) == pause_after(1_000_000) == MAX_RETRY_PAUSE


def test_a_row_that_cannot_be_planned_is_put_off_where_it_stands() -> None:
    row = postpone_unreadable(a_due_job(refusals=2, sequence=5))
    assert (row.next, row.sequence, row.refusals, row.pause) == (Occurrence(NOON, 1), 5, 3, timedelta(seconds=4))


def test_a_closed_channel_is_held_against_a_job_that_was_alone() -> None:
    assert attribute([CONFIRMED, CLOSED, CLOSED], jobs=1) == [CONFIRMED, CLOSED, CLOSED]


def test_a_closed_channel_is_held_against_no_job_of_several() -> None:
    given = [CONFIRMED, CLOSED, NACKED, RETURNED, UNKNOWN]
    assert attribute(given, jobs=2) == [CONFIRMED, UNKNOWN, NACKED, RETURNED, UNKNOWN]
    assert given[1] is CLOSED, "the broker's own verdicts stay as they are"


@pytest.mark.parametrize(("rows", "expected"), [(1, 2), (100, 200), (400, 500), (500, 500)])
def test_claims_grow_up_to_a_limit_while_all_goes_well(rows: int, expected: int) -> None:
    assert next_claim_size(rows, 500, channel_closed=False) == expected


def test_after_a_closed_channel_claims_are_of_one_row() -> None:
    assert next_claim_size(400, 500, channel_closed=True) == 1
