"""What the history tells of delayed messages. An entry is under the message's name, or its `message_id`; under
`delayed-<number>` if it has neither. Pure.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

import orjson

from consumer.commands.cancel_delayed import CancelledMessages
from consumer.commands.delayed import DelayedMessage
from consumer.commands.parse import Cancel
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


def tell_cancelled(cancels: Sequence[Cancel], cancelled: CancelledMessages) -> Iterator[HistoryEntry]:
    """Tell of the delayed messages that cancels ended."""
    for cancel, messages in zip(cancels, cancelled.of_cancel, strict=True):
        for message in messages:
            yield HistoryEntry(
                history_id(message.name, message.message_id, message.id),
                What.CANCELLED,
                due_at=message.due_at,
                by_user=cancel.user,
                app_id=cancel.origin.app_id,
                operator=cancel.origin.operator,
                note=cancel.origin.note,
                details=orjson.dumps({"delayed": message.id, "exchange": message.exchange}).decode(),
            )
