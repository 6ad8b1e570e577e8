"""How cancels close revisions, in every state of their job and in every order, and how they are answered."""

from itertools import permutations

import pytest

from consumer.commands.cancel import CancelledJob, Mark, cancel_jobs, marks_of
from consumer.commands.merge import Answer
from consumer.commands.parse import Cancel
from shared.contract.job_status import OPEN, JobStatus
from shared.contract.messages import Outcome
from shared.contract.wording import NOT_THE_OWNER


def a_cancel(revision: int | None = None, user: str | None = None) -> Cancel:
    return Cancel("a", user, revision)


def cancel(job: CancelledJob, *cancels: Cancel) -> tuple[list[Answer], int | None]:
    """Carry the cancels out. Returns the answers, and the revision to store."""
    cancelled = cancel_jobs(cancels, (), {"a": job})
    return cancelled.answers, cancelled.revisions.get("a")


def test_a_cancel_of_an_unknown_id_says_so_and_the_next_one_finds_it_cancelled() -> None:
    cancels = [a_cancel(5), a_cancel(7)]
    assert marks_of(cancels) == [Mark("a", 7, None)]
    unknown = "id: there is no such job; a request with a revision higher than 5 is taken"
    first, second = cancel_jobs(cancels, {"a"}, {}).answers
    assert first == Answer("a", Outcome.UNKNOWN, errors=(unknown,), changed=True)
    assert second == Answer("a", Outcome.CANCELLED)


@pytest.mark.parametrize(
    ("revisions", "closed"),
    [([None], 1), ([0], 0), ([None, 0], 1), ([0, None], 0), ([3, 5, 4], 5), ([None, 7], 7), ([7, None], 7)],
)
def test_the_mark_of_an_unknown_id_closes_what_all_of_its_cancels_close(
    revisions: list[int | None], closed: int
) -> None:
    """As one by one: the first one makes the mark, and a cancel without a revision closes no more than the row has."""
    assert marks_of([a_cancel(revision, "alice") for revision in revisions]) == [Mark("a", closed, "alice")]


@pytest.mark.parametrize("status", sorted(OPEN))
@pytest.mark.parametrize(("revision", "stored"), [(None, 5), (5, 5), (9, 9)])
def test_an_open_job_is_cancelled_up_to_the_revision_of_the_cancel(
    status: JobStatus, revision: int | None, stored: int
) -> None:
    answers, new = cancel(CancelledJob(status, 5), a_cancel(revision))
    assert answers == [Answer("a", Outcome.CANCELLED, changed=True)]
    assert new == stored


def test_an_older_cancel_leaves_a_job_of_a_later_revision_alone() -> None:
    answers, new = cancel(CancelledJob(JobStatus.PENDING, 5), a_cancel(4))
    older = "revision: the job is at revision 5 already; this cancel closes revisions up to 4"
    assert answers == [Answer("a", Outcome.DUPLICATE, errors=(older,))]
    assert new is None


@pytest.mark.parametrize(("revision", "stored"), [(None, None), (5, None), (4, None), (6, 6)])
def test_a_cancel_of_a_cancelled_job_closes_more_revisions_and_changes_nothing_else(
    revision: int | None, stored: int | None
) -> None:
    answers, new = cancel(CancelledJob(JobStatus.CANCELLED, 5), a_cancel(revision))
    assert answers == [Answer("a", Outcome.CANCELLED)]
    assert new == stored


@pytest.mark.parametrize(("revision", "stored"), [(None, None), (5, None), (6, 6)])
def test_a_late_cancel_is_rejected_not_parked_and_closes_more_revisions(
    revision: int | None, stored: int | None
) -> None:
    answers, new = cancel(CancelledJob(JobStatus.DONE, 5), a_cancel(revision))
    assert answers == [Answer("a", Outcome.REJECTED, errors=("id: the cancel came late, the job is done",))]
    assert new == stored


def test_only_the_first_of_several_cancels_counts_as_the_change() -> None:
    answers, new = cancel(CancelledJob(JobStatus.PENDING, 5), a_cancel(3), a_cancel(6), a_cancel(), a_cancel(7))
    assert [given.outcome for given in answers] == ["duplicate", "cancelled", "cancelled", "cancelled"]
    assert [given.changed for given in answers] == [False, True, False, False]
    assert new == 7


def test_cancels_with_revisions_come_to_the_same_in_every_order() -> None:
    for order in permutations([a_cancel(4), a_cancel(6), a_cancel(5)]):
        assert cancel(CancelledJob(JobStatus.PENDING, 5), *order)[1] == 6


def test_another_users_cancel_is_rejected_and_parked_even_if_the_job_has_ended() -> None:
    for status in JobStatus:
        jobs = {"a": CancelledJob(status, 5, owner="alice")}
        cancelled = cancel_jobs([a_cancel(9, "bob"), a_cancel(9)], (), jobs, ("root",))
        assert cancelled.answers == [Answer("a", Outcome.REJECTED, errors=(NOT_THE_OWNER,), parked=True)] * 2
        assert cancelled.revisions == {}
        assert cancel_jobs([a_cancel(9, "root")], (), jobs, ("root",)).revisions == {"a": 9}


def test_each_id_is_cancelled_by_itself() -> None:
    jobs = {"a": CancelledJob(JobStatus.PENDING, 1), "b": CancelledJob(JobStatus.DONE, 1)}
    cancelled = cancel_jobs([Cancel("c"), Cancel("b"), Cancel("a")], {"c"}, jobs)
    assert [given.outcome for given in cancelled.answers] == ["unknown", "rejected", "cancelled"]
    assert cancelled.revisions == {"a": 1}
