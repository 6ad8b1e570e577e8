"""What the history tells of delayed messages. An entry is under the message's name, or its `message_id`; under
`delayed#<number>` if it has neither. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import orjson

from consumer.commands.delayed import DelayedMessage
from consumer.commands.parse import Cancel, Trigger
from consumer.commands.to_messages import MeantMessages
from shared.contract.delayed import history_id, routing_key_text
from shared.contract.history import HistoryEntry, What


def tell_stored(message: DelayedMessage, number: int, due_at: datetime, *, replaced: bool) -> HistoryEntry:
    """Tell of a message that waits now, or that has replaced an earlier one with its name."""
    details = {
        "delayed": number,
        "exchange": message.exchange,
        "routing_key": routing_key_text(message.routing_key),
        **({"message_id": message.message_id} if message.name and message.message_id else {}),
    }
    return HistoryEntry(
        history_id(message.name, message.message_id, number),
        What.RESCHEDULED if replaced else What.ACCEPTED,
        due_at=due_at,
        by_user=message.user,
        app_id=message.app_id,
        details=orjson.dumps(details).decode(),
    )


def tell_commands(commands: Sequence[Cancel | Trigger], meant: MeantMessages) -> Iterator[HistoryEntry]:
    """Tell of the delayed messages that cancels ended, of those that triggers made due, and of refused commands."""
    for position, (command, messages) in enumerate(zip(commands, meant.of_command, strict=True)):
        is_cancel = isinstance(command, Cancel)
        for message in messages:
            details = {"delayed": message.id, "exchange": message.exchange}
            key = history_id(message.name, message.message_id, message.id)
            yield _told(key, What.CANCELLED if is_cancel else What.TRIGGERED, command, details, message.due_at)
        if (error := meant.errors[position]) and not messages and position not in meant.of_jobs:
            yield _told(
                command.id, What.REJECTED, command, {"errors": [error], "command": "cancel" if is_cancel else "trigger"}
            )


def _told(
    key: str, what: What, command: Cancel | Trigger, details: Mapping[str, object], due_at: datetime | None = None
) -> HistoryEntry:
    return HistoryEntry(
        key,
        what,
        due_at=due_at,
        by_user=command.user,
        app_id=command.origin.app_id,
        operator=command.origin.operator,
        note=command.origin.note,
        details=orjson.dumps(details).decode(),
    )
