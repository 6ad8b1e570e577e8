"""The effect of a batch does not depend on the order in which its commands arrived."""

from itertools import permutations

import pytest

from consumer.commands.merge import Answer, Change, StoredJob, answer_merged, merge_commands
from consumer.commands.parse import Cancel
from consumer.commands.schedule import Schedule
from shared.contract.job_status import JobStatus
from shared.contract.messages import Outcome
from tests.support.builders import NOON, a_schedule

PENDING = StoredJob(JobStatus.PENDING, 1, NOON, applied=True, created=True)


def answers(commands: list[Schedule | Cancel], job: StoredJob) -> list[Answer]:
    return answer_merged(commands, merge_commands(commands), {"job-1": job})


def outcomes(commands: list[Schedule | Cancel], job: StoredJob) -> list[Outcome]:
    return [given.outcome for given in answers(commands, job)]


def test_the_highest_revision_wins_in_every_order() -> None:
    for order in permutations([a_schedule(revision=revision) for revision in (1, 2, 3)]):
        change = merge_commands(order)["job-1"]
        assert change.schedule is not None
        assert change.schedule.revision == 3


def test_a_cancel_wins_in_every_order() -> None:
    commands: list[Schedule | Cancel] = [a_schedule(revision=1), Cancel("job-1"), a_schedule(revision=2)]
    for order in permutations(commands):
        assert merge_commands(order)["job-1"].cancelled_by is not None


def test_each_id_has_its_own_change() -> None:
    changes = merge_commands([a_schedule(id="a"), Cancel("b"), a_schedule(id="a", revision=2)])
    assert changes == {"a": Change("a", schedule=a_schedule(id="a", revision=2)), "b": Change("b", cancelled_by=1)}


def test_of_two_equal_requests_the_first_is_accepted_and_the_second_a_duplicate() -> None:
    assert outcomes([a_schedule(), a_schedule()], PENDING) == [Outcome.ACCEPTED, Outcome.DUPLICATE]


def test_a_request_before_its_cancel_in_one_batch_was_accepted_and_then_cancelled() -> None:
    cancelled = StoredJob(JobStatus.CANCELLED, 1, None, applied=True, created=True)
    assert outcomes([a_schedule(), Cancel("job-1")], cancelled) == [Outcome.ACCEPTED, Outcome.CANCELLED]
    assert outcomes([Cancel("job-1"), a_schedule()], cancelled) == [Outcome.CANCELLED, Outcome.CANCELLED]


def test_only_the_first_of_several_cancels_counts_as_the_change() -> None:
    cancelled = StoredJob(JobStatus.CANCELLED, 0, None, applied=True, created=True)
    assert [given.changed for given in answers([Cancel("job-1"), Cancel("job-1")], cancelled)] == [True, False]


@pytest.mark.parametrize(
    ("job", "revision", "outcome", "parked"),
    [
        (StoredJob(JobStatus.PENDING, 2, NOON, applied=True, created=False), 2, Outcome.RESCHEDULED, False),
        (StoredJob(JobStatus.PENDING, 2, NOON, applied=False, created=False), 2, Outcome.DUPLICATE, False),
        (StoredJob(JobStatus.PENDING, 3, NOON, applied=False, created=False), 2, Outcome.DUPLICATE, False),
        (StoredJob(JobStatus.PAUSED, 2, NOON, applied=True, created=False), 2, Outcome.RESCHEDULED, False),
        (StoredJob(JobStatus.PAUSED, 2, NOON, applied=False, created=False), 2, Outcome.DUPLICATE, False),
        (StoredJob(JobStatus.DONE, 2, None, applied=False, created=False), 2, Outcome.DUPLICATE, False),
        (StoredJob(JobStatus.DONE, 1, None, applied=False, created=False), 2, Outcome.REJECTED, True),
        (StoredJob(JobStatus.CANCELLED, 0, None, applied=False, created=False), 2, Outcome.CANCELLED, False),
    ],
)
def test_a_request_is_answered_by_the_state_of_its_job(
    job: StoredJob, revision: int, outcome: Outcome, parked: bool
) -> None:
    [given] = answers([a_schedule(revision=revision)], job)
    assert (given.outcome, given.parked) == (outcome, parked)


def test_a_late_cancel_is_rejected() -> None:
    [given] = answers([Cancel("job-1")], StoredJob(JobStatus.DONE, 1, None, applied=False, created=False))
    assert given.outcome is Outcome.REJECTED
    assert given.errors == ("id: the cancel came late, the job is done",)


def test_a_second_cancel_is_answered_as_cancelled() -> None:
    [given] = answers([Cancel("job-1")], StoredJob(JobStatus.CANCELLED, 1, None, applied=False, created=False))
    assert (given.outcome, given.changed) == (Outcome.CANCELLED, False)
