"""How pauses, resumes and triggers are answered, in every state of their job and for every user."""

from itertools import permutations

import pytest

from consumer.commands.merge import Answer, may_command
from consumer.commands.parse import Pause, Resume, Trigger
from consumer.commands.pause_and_trigger import LockedJob, PauseChange, StoredTriggers, answer_triggers, pause_jobs
from shared.contract.job_status import OPEN, JobStatus
from shared.contract.messages import Outcome
from shared.contract.wording import NOT_THE_OWNER
from tests.support.builders import NOON

PENDING = LockedJob(JobStatus.PENDING, NOON)


def test_in_order_of_arrival_the_last_of_pauses_and_resumes_wins() -> None:
    commands: list[Pause | Resume] = [Pause("a"), Resume("a"), Pause("a", "alice"), Resume("b")]
    for order in permutations(commands):
        changes = pause_jobs(order, {"a": PENDING, "b": PENDING}, ()).changes
        last = [command for command in order if command.id == "a"][-1]
        assert changes == ({"a": PauseChange(JobStatus.PAUSED, 0)} if isinstance(last, Pause) else {})


def test_with_revisions_the_highest_of_pauses_and_resumes_wins_in_every_order() -> None:
    commands: list[Pause | Resume] = [Pause("a", revision=3), Resume("a", revision=4), Pause("a", revision=5)]
    for order in permutations(commands):
        paused = pause_jobs(order, {"a": PENDING}, ())
        assert paused.changes == {"a": PauseChange(JobStatus.PAUSED, 5)}
        outcomes = {command.revision: given for command, given in zip(order, paused.answers, strict=True)}
        assert outcomes[5].outcome is Outcome.PAUSED


def test_a_pause_speaks_of_revisions_up_to_its_own() -> None:
    job = LockedJob(JobStatus.PENDING, NOON, revision=7)
    paused = pause_jobs([Pause("a", revision=6), Resume("a", revision=6)], {"a": job}, ())
    assert [given.outcome for given in paused.answers] == [Outcome.DUPLICATE] * 2
    assert [given.errors for given in paused.answers] == [
        ("revision: the job is at revision 7 already; this pause speaks of revisions up to 6",),
        ("revision: the job is at revision 7 already; this resume speaks of revisions up to 6",),
    ]
    assert paused.changes == {}
    assert pause_jobs([Pause("a", revision=7)], {"a": job}, ()).changes == {"a": PauseChange(JobStatus.PAUSED, 7)}


def test_a_pause_that_comes_again_does_not_undo_the_resume_that_followed_it() -> None:
    job = LockedJob(JobStatus.PENDING, NOON, pause_revision=5)  # resumed with revision 5
    applied = "revision: a pause or resume with revision 5 was applied already; pause with a higher one"
    paused = pause_jobs([Pause("a", revision=4), Pause("a", revision=5)], {"a": job}, ())
    assert paused.answers == [Answer("a", Outcome.DUPLICATE, NOON, (applied,))] * 2
    assert paused.changes == {}


def test_a_pause_or_resume_that_was_applied_and_comes_again_is_a_duplicate_without_a_reason() -> None:
    """An application that sends it again, because the first reply was lost, has nothing to put right."""
    for job, command in (
        (LockedJob(JobStatus.PENDING, NOON, pause_revision=5), Resume("a", revision=5)),
        (LockedJob(JobStatus.PAUSED, NOON, pause_revision=5), Pause("a", revision=5)),
        # Rescheduled since: the job has stayed paused.
        (LockedJob(JobStatus.PAUSED, NOON, revision=6, pause_revision=5), Pause("a", revision=5)),
    ):
        paused = pause_jobs([command], {"a": job}, ())
        assert paused.answers == [Answer("a", Outcome.DUPLICATE, NOON)]
        assert paused.changes == {}
    twice = pause_jobs([Pause("a", revision=5)] * 2, {"a": PENDING}, ())
    assert [given.outcome for given in twice.answers] == [Outcome.PAUSED, Outcome.DUPLICATE]
    assert twice.changes == {"a": PauseChange(JobStatus.PAUSED, 5)}


def test_a_pause_without_a_revision_always_applies_and_leaves_the_others_their_order() -> None:
    job = LockedJob(JobStatus.PENDING, NOON, revision=7, pause_revision=9)
    assert pause_jobs([Pause("a")], {"a": job}, ()).changes == {"a": PauseChange(JobStatus.PAUSED, 9)}


@pytest.mark.parametrize("status", [JobStatus.PENDING, JobStatus.PAUSED])
def test_an_open_job_can_be_paused_and_resumed_in_either_state(status: JobStatus) -> None:
    answers = pause_jobs([Pause("a"), Resume("a")], {"a": LockedJob(status, NOON)}, ()).answers
    changes_first = status is JobStatus.PENDING
    assert answers == [
        Answer("a", Outcome.PAUSED, NOON, changed=changes_first),
        Answer("a", Outcome.RESUMED, NOON, changed=True),
    ]


@pytest.mark.parametrize("status", sorted(set(JobStatus) - OPEN))
def test_a_command_for_an_ended_job_is_rejected_and_not_parked(status: JobStatus) -> None:
    jobs = {"a": LockedJob(status, None)}
    answers = pause_jobs([Pause("a"), Resume("a")], jobs, ()).answers
    answers += answer_triggers([Trigger("a", "x")], StoredTriggers(jobs), ())
    assert answers == [Answer("a", Outcome.REJECTED, errors=(f"id: the job is {status}",))] * 3


def test_a_command_for_an_unknown_id_is_rejected_and_parked() -> None:
    answers = pause_jobs([Pause("a"), Resume("a")], {}, ()).answers
    answers += answer_triggers([Trigger("a", "x")], StoredTriggers({}), ())
    assert answers == [Answer("a", Outcome.REJECTED, errors=("id: there is no such job",), parked=True)] * 3


def test_another_users_command_is_rejected_and_parked_even_if_the_job_has_ended() -> None:
    jobs = {"a": LockedJob(JobStatus.DONE, None, owner="alice")}
    answers = pause_jobs([Pause("a", "bob"), Resume("a")], jobs, ()).answers
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
