"""How pauses, resumes and triggers are answered, in every state of their job and for every user."""

from itertools import permutations

import pytest

from consumer.commands.merge import NOT_THE_OWNER, Answer, may_command
from consumer.commands.parse import Pause, Resume, Trigger
from consumer.commands.pause_and_trigger import LockedJob, StoredTriggers, answer_pauses, answer_triggers, last_per_job
from shared.contract.job_status import OPEN, JobStatus
from shared.contract.messages import Outcome
from tests.support.builders import NOON

PENDING = LockedJob(JobStatus.PENDING, NOON)


def test_in_order_of_arrival_the_last_of_pauses_and_resumes_wins() -> None:
    commands: list[Pause | Resume] = [Pause("a"), Resume("a"), Pause("a", "alice"), Resume("b")]
    for order in permutations(commands):
        assert last_per_job(order)["a"] is [command for command in order if command.id == "a"][-1]


@pytest.mark.parametrize("status", [JobStatus.PENDING, JobStatus.PAUSED])
def test_an_open_job_can_be_paused_and_resumed_in_either_state(status: JobStatus) -> None:
    answers = answer_pauses([Pause("a"), Resume("a")], {"a": LockedJob(status, NOON)}, ())
    assert answers == [Answer("a", Outcome.PAUSED, NOON), Answer("a", Outcome.RESUMED, NOON)]


@pytest.mark.parametrize("status", sorted(set(JobStatus) - OPEN))
def test_a_command_for_an_ended_job_is_rejected_and_not_parked(status: JobStatus) -> None:
    jobs = {"a": LockedJob(status, None)}
    answers = answer_pauses([Pause("a"), Resume("a")], jobs, ())
    answers += answer_triggers([Trigger("a", "x")], StoredTriggers(jobs), ())
    assert answers == [Answer("a", Outcome.REJECTED, errors=(f"id: the job is {status}",))] * 3


def test_a_command_for_an_unknown_id_is_rejected_and_parked() -> None:
    answers = answer_pauses([Pause("a"), Resume("a")], {}, ())
    answers += answer_triggers([Trigger("a", "x")], StoredTriggers({}), ())
    assert answers == [Answer("a", Outcome.REJECTED, errors=("id: there is no such job",), parked=True)] * 3


def test_another_users_command_is_rejected_and_parked_even_if_the_job_has_ended() -> None:
    jobs = {"a": LockedJob(JobStatus.DONE, None, owner="alice")}
    answers = answer_pauses([Pause("a", "bob"), Resume("a")], jobs, ())
    answers += answer_triggers([Trigger("a", "x", user="bob")], StoredTriggers(jobs, already_known={("a", "x")}), ())
    assert answers == [Answer("a", Outcome.REJECTED, errors=(NOT_THE_OWNER,), parked=True)] * 3


def test_of_two_triggers_with_one_id_the_first_fires() -> None:
    commands = [Trigger("a", "x"), Trigger("a", "x"), Trigger("a", "y")]
    answers = answer_triggers(commands, StoredTriggers({"a": PENDING}, new={("a", "x")}), ())
    assert [given.outcome for given in answers] == [Outcome.TRIGGERED, Outcome.DUPLICATE, Outcome.DUPLICATE]
    assert [given.changed for given in answers] == [True, False, False]


@pytest.mark.parametrize("status", sorted(set(JobStatus) - OPEN))
def test_a_trigger_that_was_stored_before_is_a_duplicate_even_if_its_job_has_ended(status: JobStatus) -> None:
    stored = StoredTriggers({"a": LockedJob(status, None)}, already_known={("a", "x")})
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
