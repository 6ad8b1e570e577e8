"""Carries out the cancels and triggers of a step for the delayed messages that they mean, inside its transaction."""

from collections.abc import Sequence

from consumer.commands.delayed_history import tell_commands
from consumer.commands.parse import Cancel, Trigger
from consumer.commands.to_messages import MeantMessages, choose_messages
from consumer.store.delayed import delete_messages, lock_waiting, make_due
from consumer.store.jobs import find_ids
from shared.contract.delayed import number_in
from shared.contract.history import HistoryLevel
from shared.postgres.history import add_entries
from shared.postgres.pool import Connection


async def find_messages(
    connection: Connection, commands: Sequence[Cancel | Trigger], operators: Sequence[str]
) -> MeantMessages:
    """Lock the delayed messages that commands mean until the transaction ends, and say what each command comes to."""
    ids = {command.id for command in commands}
    numbers = {number for each in ids if (number := number_in(each)) is not None}
    waiting = await lock_waiting(connection, sorted(ids), sorted(numbers))
    if not waiting and not numbers:
        return choose_messages(commands, (), ())
    return choose_messages(commands, waiting, await find_ids(connection, sorted(ids)), operators)


async def cancel_messages(
    connection: Connection, cancels: Sequence[Cancel], meant: MeantMessages, history: HistoryLevel
) -> None:
    """After the commit: the messages will not be published, and the history tells who cancelled them."""
    if numbers := meant.numbers:
        await delete_messages(connection, numbers)
    await add_entries(connection, tell_commands(cancels, meant), history)


async def release_messages(
    connection: Connection, triggers: Sequence[Trigger], meant: MeantMessages, history: HistoryLevel
) -> None:
    """After the commit: the messages are due now, those that the broker had refused, too."""
    if numbers := meant.numbers:
        await make_due(connection, numbers)
    await add_entries(connection, tell_commands(triggers, meant), history)
