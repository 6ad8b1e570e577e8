"""Cancels and triggers that mean delayed messages: whose they obey, and what they are answered."""

from datetime import UTC, datetime

import pytest

from consumer.commands.parse import Cancel, Trigger
from consumer.commands.to_messages import (
    MAX_MEANT_MESSAGES,
    TOO_MANY,
    WaitingMessage,
    answer_commands,
    choose_messages,
)
from shared.contract.delayed import number_in, numbered_id
from shared.contract.messages import Outcome

DUE = datetime(2030, 6, 1, tzinfo=UTC)


def waiting(
    number: int, message_id: str | None = "m", name: str | None = None, owner: str | None = None
) -> WaitingMessage:
    return WaitingMessage(number, message_id, name, "orders", DUE, owner)


def outcomes(*commands: Cancel | Trigger, on: list[WaitingMessage], operators: tuple[str, ...] = ()) -> list[Outcome]:
    meant = choose_messages(commands, on, (), operators)
    assert meant.of_jobs == []
    return [answer.outcome for answer in answer_commands(commands, meant, [])]


@pytest.mark.parametrize(
    ("user", "outcome"),
    [("alice", Outcome.CANCELLED), ("bob", Outcome.REJECTED), (None, Outcome.REJECTED), ("root", Outcome.CANCELLED)],
)
def test_a_message_obeys_its_owner_and_operators_alone(user: str | None, outcome: Outcome) -> None:
    assert outcomes(Cancel("m", user), on=[waiting(1, owner="alice")], operators=("root",)) == [outcome]


def test_a_command_means_all_that_wait_under_its_id_and_a_number_means_one() -> None:
    messages = [waiting(1), waiting(2), waiting(3, None, "m"), waiting(4, "other", "name")]
    assert choose_messages([Cancel("m")], messages, ()).numbers == [1, 2, 3]
    assert choose_messages([Cancel("delayed#2"), Cancel("m")], messages, ()).of_command == [
        [messages[1]], [messages[0], messages[2]],
    ]  # fmt: skip
    assert choose_messages([Trigger("name", "t")], messages, ()).numbers == [4]


def test_a_command_that_means_too_many_messages_is_refused_and_its_neighbours_are_carried_out() -> None:
    many = [waiting(number) for number in range(MAX_MEANT_MESSAGES + 1)]
    commands: list[Cancel | Trigger] = [Cancel("m"), Trigger("m", "t"), Cancel("other")]
    meant = choose_messages(commands, [*many, waiting(-1, "other")], ())
    assert meant.numbers == [-1]
    refused, too, other = answer_commands(commands, meant, [])
    assert refused.errors == too.errors == (TOO_MANY,)
    assert other.outcome is Outcome.CANCELLED
    assert len(choose_messages([Cancel("m")], many[1:], ()).numbers) == MAX_MEANT_MESSAGES


def test_a_command_that_comes_again_has_the_same_answer_and_one_too_late_is_told() -> None:
    assert outcomes(Cancel("m"), Cancel("m"), Cancel("delayed#9"), on=[waiting(1)]) == [
        Outcome.CANCELLED, Outcome.CANCELLED, Outcome.UNKNOWN,
    ]  # fmt: skip
    [answer] = answer_commands([Trigger("delayed#9", "t")], choose_messages([Trigger("delayed#9", "t")], [], ()), [])
    assert (answer.outcome, answer.parked) == (Outcome.REJECTED, False)


def test_a_trigger_with_a_payload_publishes_no_message() -> None:
    assert outcomes(Trigger("m", "t", payload="1"), Trigger("m", "t"), on=[waiting(1)]) == [
        Outcome.REJECTED, Outcome.TRIGGERED,
    ]  # fmt: skip


def test_an_id_of_a_job_reaches_the_job_too() -> None:
    assert choose_messages([Cancel("m"), Cancel("job"), Cancel("delayed#1")], [waiting(1)], {"m"}).of_jobs == [0, 1]


@pytest.mark.parametrize(
    "text", ["delayed#", "delayed#x", "delayed-1", "delayed#1 ", "xdelayed#1", f"delayed#{10**18}"]
)
def test_only_a_number_is_a_number(text: str) -> None:
    assert number_in(text) is None
    assert number_in(numbered_id(17)) == 17
