"""The effect of the requests of a batch does not depend on the order in which they arrived."""

from dataclasses import replace as with_fields
from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

from consumer.commands.merge import Answer, StoredJob, answer_requests, content_of, merge_requests
from consumer.commands.schedule import Schedule
from shared.contract.job_status import JobStatus
from shared.contract.messages import Outcome
from shared.recurrence import RuleSpec
from tests.support.builders import NOON, a_schedule

PENDING = StoredJob(JobStatus.PENDING, 1, NOON, applied=True, created=True)
DAILY = RuleSpec(start_at="2030-06-01T12:00:00Z", cron="@daily")


def answers(requests: list[Schedule], job: StoredJob) -> list[Answer]:
    return answer_requests(requests, merge_requests(requests), {"job-1": job})


def outcomes(requests: list[Schedule], job: StoredJob) -> list[Outcome]:
    return [given.outcome for given in answers(requests, job)]


def test_the_highest_revision_wins_in_every_order() -> None:
    for order in permutations([a_schedule(revision=revision) for revision in (1, 2, 3)]):
        assert merge_requests(order)["job-1"].revision == 3


def test_of_one_revision_the_first_request_wins() -> None:
    first = a_schedule(topic="first")
    assert merge_requests([first, a_schedule(topic="second")])["job-1"] is first


def test_each_id_has_its_own_request() -> None:
    merged = merge_requests([a_schedule(id="a"), a_schedule(id="b"), a_schedule(id="a", revision=2)])
    assert merged == {"a": a_schedule(id="a", revision=2), "b": a_schedule(id="b")}


def test_of_two_equal_requests_the_first_is_accepted_and_the_second_a_duplicate() -> None:
    first, second = answers([a_schedule(), a_schedule()], PENDING)
    assert (first.outcome, second.outcome) == (Outcome.ACCEPTED, Outcome.DUPLICATE)
    assert second.errors == ()


def test_of_two_different_requests_with_one_revision_the_second_learns_what_differs() -> None:
    _, second = answers([a_schedule(), a_schedule(topic="other")], PENDING)
    assert second.errors == ("revision: 1 is in use with another topic; a higher revision replaces it",)


@pytest.mark.parametrize(
    ("job", "revision", "outcome"),
    [
        (StoredJob(JobStatus.PENDING, 2, NOON, applied=True, created=False), 2, Outcome.RESCHEDULED),
        (StoredJob(JobStatus.PENDING, 2, NOON, applied=True, created=True), 2, Outcome.ACCEPTED),
        (StoredJob(JobStatus.PENDING, 2, NOON, applied=False, created=False), 2, Outcome.DUPLICATE),
        (StoredJob(JobStatus.PENDING, 3, NOON, applied=False, created=False), 2, Outcome.DUPLICATE),
        (StoredJob(JobStatus.PAUSED, 2, NOON, applied=True, created=False), 2, Outcome.RESCHEDULED),
        (StoredJob(JobStatus.PAUSED, 2, NOON, applied=False, created=False), 2, Outcome.DUPLICATE),
        (StoredJob(JobStatus.DONE, 2, None, applied=False, created=False), 2, Outcome.DUPLICATE),
        (StoredJob(JobStatus.CANCELLED, 3, None, applied=False, created=False), 2, Outcome.DUPLICATE),
    ],
)
def test_a_request_is_answered_by_the_state_of_its_job(job: StoredJob, revision: int, outcome: Outcome) -> None:
    [given] = answers([a_schedule(revision=revision)], job)
    assert (given.outcome, given.parked) == (outcome, False)


@pytest.mark.parametrize("status", [JobStatus.DONE, JobStatus.CANCELLED])
def test_a_duplicate_of_a_job_that_has_ended_says_how_when_and_which_revision_uses_it_again(status: JobStatus) -> None:
    job = StoredJob(status, 7, None, applied=False, created=False, finished_at=NOON)
    [given] = answers([a_schedule(revision=7)], job)
    assert given.errors == (
        f"id: the job is {status} since 2030-06-01T12:00:00Z; a revision higher than 7 uses the id again",
    )


OLD: dict[str, Any] = {"payload": '{"a": 1}', "webhook": '{"url": "http://a"}', "topic": "tea"}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({}, None),
        ({"topic": "coffee"}, "topic"),
        ({"payload": '{"a": 2}'}, "payload"),
        ({"payload": None}, "payload"),
        ({"webhook": None}, "webhook"),
        ({"next_run_at": NOON.replace(hour=13)}, "moment"),
        ({"rule": DAILY}, "rule"),
        ({"topic": "coffee", "payload": "1"}, "topic and payload"),
        ({"topic": "coffee", "payload": "1", "webhook": None, "rule": DAILY}, "topic, payload, webhook and rule"),
        ({"traceparent": "00-" + "1" * 32 + "-" + "1" * 16 + "-01"}, None),
    ],
)
def test_a_duplicate_that_says_something_else_names_what_differs(changes: dict[str, Any], named: str | None) -> None:
    stored = content_of(a_schedule(**OLD))
    job = StoredJob(JobStatus.PENDING, 1, NOON, applied=False, created=False, content=stored)
    [given] = answers([a_schedule(**OLD | changes)], job)
    wanted = f"revision: 1 is in use with another {named}; a higher revision replaces it"
    assert given == Answer("job-1", Outcome.DUPLICATE, NOON, (wanted,) if named else ())


def test_a_lower_revision_is_a_duplicate_whatever_it_says() -> None:
    stored = content_of(a_schedule())
    job = StoredJob(JobStatus.PENDING, 2, NOON, applied=False, created=False, content=stored)
    [given] = answers([a_schedule(topic="other")], job)
    assert given.errors == ()


def test_a_rule_that_starts_when_it_is_made_is_the_same_rule_when_it_is_read_again() -> None:
    later = with_fields(DAILY, start_at="2031-06-01T12:00:00Z")
    made = a_schedule(rule=DAILY, starts_when_made=True)
    job = StoredJob(JobStatus.PENDING, 1, NOON, applied=False, created=False, content=content_of(made))
    [again] = answers([replace(made, rule=later)], job)
    assert again.errors == ()
    [given_start] = answers([replace(made, rule=later, starts_when_made=False)], job)
    assert "rule" in given_start.errors[0]
    [other_rule] = answers([replace(made, rule=with_fields(later, cron="@hourly"))], job)
    assert "rule" in other_rule.errors[0]


def test_the_moment_of_a_rule_is_not_compared() -> None:
    """The stored job has moved on to a later occurrence."""
    stored = content_of(a_schedule(rule=DAILY, next_run_at=NOON.replace(day=9)))
    job = StoredJob(JobStatus.PENDING, 1, NOON, applied=False, created=False, content=stored)
    assert answers([a_schedule(rule=DAILY)], job)[0].errors == ()
