"""A batch in steps has the effect of its commands one by one: no command overtakes one on which it depends."""

from hypothesis import given
from hypothesis import strategies as st

from consumer.commands.merge import Step, cut_into_steps
from consumer.commands.parse import Bulk, Cancel, Command, Pause, Query, Refused, Resume, Trigger
from consumer.commands.schedule import Schedule
from shared.contract.messages import BulkAction
from tests.support.builders import a_schedule

users = st.sampled_from([None, "alice", "bob"])
ids = st.sampled_from(["a", "b", "c"])
revisions = st.none() | st.integers(0, 5)
commands = st.one_of(
    st.builds(
        lambda job, user, revision: a_schedule(id=job, user=user, revision=revision), ids, users, st.integers(1, 3)
    ),
    st.builds(Cancel, ids, users, revisions),
    st.builds(Pause, ids, users, revisions),
    st.builds(Resume, ids, users, revisions),
    st.builds(Trigger, ids, st.sampled_from(["x", "y"]), user=users),
    st.builds(Query, ids, users),
    st.builds(Bulk, ids, st.just(BulkAction.PAUSE)),
    st.builds(Refused, st.just(("id: is missing",))),
)


def contents(step: Step) -> dict[int, Schedule | Cancel | Pause | Resume | Trigger | Query | Bulk]:
    parts = (step.scheduling, step.cancelling, step.pausing, step.triggering, step.reading, step.bulks)
    return {
        position: command for part in parts for position, command in zip(part.positions, part.commands, strict=True)
    }


@given(st.lists(commands, max_size=40))
def test_every_command_is_in_one_step_and_those_of_an_id_in_order_of_arrival(batch: list[Command]) -> None:
    steps = [contents(step) for step in cut_into_steps(batch)]
    placed = {position: (number, command) for number, step in enumerate(steps) for position, command in step.items()}
    assert sum(len(step) for step in steps) == len(placed)
    assert {position: command for position, (_, command) in placed.items()} == {
        position: command for position, command in enumerate(batch) if not isinstance(command, Refused)
    }
    for job_id in "abc":
        numbers = [placed[position][0] for position in sorted(placed) if placed[position][1].id == job_id]
        assert numbers == sorted(numbers)


@given(st.lists(commands, max_size=40))
def test_a_bulk_comes_after_all_that_arrived_before_it_and_before_all_that_came_later(batch: list[Command]) -> None:
    steps = [contents(step) for step in cut_into_steps(batch)]
    number_of = {position: number for number, step in enumerate(steps) for position in step}
    for bulk in (position for position, command in enumerate(batch) if isinstance(command, Bulk)):
        for position, number in number_of.items():
            assert (number > number_of[bulk]) == (position > bulk)


def place_of(command: Command) -> int:
    return {Schedule: 0, Cancel: 1, Query: 3}.get(type(command), 2)


@given(st.lists(commands, max_size=40))
def test_in_a_step_an_id_has_one_user_and_no_command_is_stored_before_an_earlier_one(batch: list[Command]) -> None:
    """Pauses and triggers of one id may change places: each leaves the job open, as the other one needs it. Queries
    change nothing, so those of all users may share a step.
    """
    for step in cut_into_steps(batch):
        in_order = sorted(contents(step).items())
        assert in_order, "no step is empty"
        for job_id in {command.id for _, command in in_order}:
            of_job = [command for _, command in in_order if command.id == job_id]
            assert len({command.user for command in of_job if not isinstance(command, Query)}) <= 1
            assert (places := [place_of(command) for command in of_job]) == sorted(places)


def test_a_request_and_its_cancel_share_a_step_and_a_request_after_a_cancel_does_not() -> None:
    one, two, cancel = a_schedule(id="a"), a_schedule(id="a", revision=2), Cancel("a")
    assert len(cut_into_steps([one, two, cancel, Pause("a"), Trigger("a", "x")])) == 1
    assert [len(contents(step)) for step in cut_into_steps([one, cancel, two, cancel])] == [2, 2]


def test_plain_requests_of_many_users_are_one_step_with_one_part() -> None:
    batch: list[Command] = [a_schedule(id=f"job-{n % 50}", user=f"user-{n % 50}", revision=n) for n in range(500)]
    [step] = cut_into_steps(batch)
    assert len(step.scheduling.commands) == 500
    assert not any(part.commands for part in (step.cancelling, step.pausing, step.triggering, step.reading))


def test_queries_of_many_users_for_few_jobs_are_one_step() -> None:
    batch: list[Command] = [Query(f"job-{n % 5}", f"user-{n % 7}") for n in range(500)]
    [step] = cut_into_steps(batch)
    assert step.reading.commands == batch


def test_a_command_after_a_query_comes_in_the_next_step() -> None:
    request, query, cancel = a_schedule(id="a", user="alice"), Query("a", "bob"), Cancel("a", "alice")
    assert [list(contents(step)) for step in cut_into_steps([request, query, cancel, query])] == [[0, 1], [2, 3]]


def test_a_batch_of_refused_commands_has_no_step() -> None:
    assert cut_into_steps([Refused(("id: is missing",))]) == []
