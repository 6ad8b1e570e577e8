"""What pauses, resumes and triggers are told, whatever state their job is in and whoever sends them."""

from itertools import permutations

import pytest

from consumer.commands.merge import NOT_YOURS, Answer, may_command
from consumer.commands.parse import Pause, Resume, Trigger
from consumer.commands.pause_and_trigger import LockedJob, StoredTriggers, answer_steering, answer_triggers, last_wishes
from shared.contract.job_status import OPEN, JobStatus
from shared.contract.messages import Outcome
from tests.support.builders import NOON

PENDING = LockedJob(JobStatus.PENDING, NOON)


def test_in_order_of_arrival_the_last_of_pauses_and_resumes_wins() -> None:
    commands: list[Pause | Resume] = [Pause("a"), Resume("a"), Pause("a", "someone"), Resume("b")]
    for order in permutations(commands):
        assert last_wishes(order)["a"] is [command for command in order if command.id == "a"][-1]


@pytest.mark.parametrize("status", [JobStatus.PENDING, JobStatus.PAUSED])
def test_a_pause_and_a_resume_of_an_open_job_are_told_that_it_is_so(status: JobStatus) -> None:
    answers = answer_steering([Pause("a"), Resume("a")], {"a": LockedJob(status, NOON)}, ())
    assert answers == [Answer("a", Outcome.PAUSED, NOON), Answer("a", Outcome.RESUMED, NOON)]


@pytest.mark.parametrize("status", sorted(set(JobStatus) - OPEN))
def test_what_is_over_obeys_nobody_and_the_command_is_not_kept(status: JobStatus) -> None:
    jobs = {"a": LockedJob(status, None)}
    told = answer_steering([Pause("a"), Resume("a")], jobs, ())
    told += answer_triggers([Trigger("a", "x")], StoredTriggers(jobs), ())
    assert told == [Answer("a", Outcome.REJECTED, errors=(f"id: the job is {status}",))] * 3


def test_a_command_for_an_unknown_id_is_refused_and_kept() -> None:
    told = answer_steering([Pause("a"), Resume("a")], {}, ())
    told += answer_triggers([Trigger("a", "x")], StoredTriggers({}), ())
    assert told == [Answer("a", Outcome.REJECTED, errors=("id: there is no such job",), parked=True)] * 3


def test_another_users_command_is_refused_and_kept_even_if_the_job_is_over() -> None:
    jobs = {"a": LockedJob(JobStatus.DONE, None, owner="alice")}
    told = answer_steering([Pause("a", "bob"), Resume("a")], jobs, ())
    told += answer_triggers([Trigger("a", "x", user="bob")], StoredTriggers(jobs, heeded={("a", "x")}), ())
    assert told == [Answer("a", Outcome.REJECTED, errors=(NOT_YOURS,), parked=True)] * 3


def test_of_two_triggers_with_one_id_the_first_rings() -> None:
    commands = [Trigger("a", "x"), Trigger("a", "x"), Trigger("a", "y")]
    answers = answer_triggers(commands, StoredTriggers({"a": PENDING}, new={("a", "x")}), ())
    assert [given.outcome for given in answers] == [Outcome.TRIGGERED, Outcome.DUPLICATE, Outcome.DUPLICATE]
    assert [given.changed for given in answers] == [True, False, False]


@pytest.mark.parametrize("status", sorted(set(JobStatus) - OPEN))
def test_a_trigger_that_was_heeded_is_a_duplicate_even_if_its_job_is_over(status: JobStatus) -> None:
    stored = StoredTriggers({"a": LockedJob(status, None)}, heeded={("a", "x")})
    known, unknown = answer_triggers([Trigger("a", "x"), Trigger("a", "y")], stored, ())
    assert known == Answer("a", Outcome.DUPLICATE)
    assert unknown.outcome is Outcome.REJECTED


@pytest.mark.parametrize(
    ("user", "owner", "may"),
    [
        (None, None, True),
        ("bob", None, True),
        ("alice", "alice", True),
        ("bob", "alice", False),
        (None, "alice", False),
        ("root", "alice", True),
    ],
)
def test_who_may_command_a_job(user: str | None, owner: str | None, may: bool) -> None:
    assert may_command(user, owner, ("root",)) is may
