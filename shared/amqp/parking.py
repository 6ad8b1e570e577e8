"""Parking: a message that could not be understood is put aside in `scheduler.parked`, body untouched, reasons in
headers, so that it is never lost and never in the way.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from shared.amqp.message import IncomingMessage, OutgoingMessage, PublishResult
from shared.amqp.publisher import Publisher
from shared.amqp.wire import size_of_headers
from shared.errors import ParkingFailed

# All headers of a message must fit into one frame (128 KiB by default) together with the other properties.
MAX_KEPT_HEADERS = 32 * 1024
# Where frames are small, the reason alone is kept, and the beginning of it: 4 KiB, the least that AMQP allows, hold it.
SHORT_REASON = 200
# The encoder calls itself for each level; RabbitMQ's own headers have three.
MAX_KEPT_DEPTH = 32


async def park(publisher: Publisher, copies: Sequence[OutgoingMessage], timeout: float) -> None:
    """After it returns, all are in the parking queue, confirmed."""
    verdicts = await publisher.publish(copies, timeout)
    if any(verdict is not PublishResult.CONFIRMED for verdict in verdicts):
        raise ParkingFailed(f"parked messages were not confirmed: {', '.join(sorted(set(verdicts)))}")


def parked_copy(message: IncomingMessage, *, exchange: str, errors: Sequence[str], parked_by: str) -> OutgoingMessage:
    """To be published and confirmed before the original is acknowledged."""
    reason = "; ".join(errors)
    where = {
        "duebell-parked-by": parked_by,
        "duebell-parked-at": datetime.now(UTC),
        "duebell-exchange": message.exchange,
        "duebell-routing-key": message.routing_key,
        # The copy has a message_id of its own: the broker's returns name a message by it.
        **({"duebell-message-id": message.message_id} if message.message_id else {}),
        # RabbitMQ lets nobody publish under another's name.
        **({"duebell-user-id": message.user_id} if message.user_id else {}),
    }
    return sent_on(
        message,
        exchange,
        message.routing_key,
        {**_kept_headers(message.headers), "duebell-reason": reason, "duebell-errors": list(errors), **where},
        {"duebell-headers-dropped": "too large for a frame", "duebell-reason": reason[:SHORT_REASON], **where},
    )


def sent_on(
    message: IncomingMessage,
    exchange: str,
    routing_key: str,
    headers: dict[str, Any],
    short_headers: dict[str, Any] | None = None,
) -> OutgoingMessage:
    """The same message to another place, with other headers."""
    return OutgoingMessage(
        exchange=exchange,
        routing_key=routing_key,
        body=message.body,
        type=message.type,
        content_type=message.content_type,
        content_encoding=message.content_encoding,
        priority=message.priority,
        app_id=message.app_id,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        timestamp=message.timestamp,
        headers=headers,
        short_headers=short_headers,
    )


def _kept_headers(headers: dict[str, Any]) -> dict[str, Any]:
    if _is_too_deep(headers):
        return {"duebell-headers-dropped": "nested too deep to keep"}
    try:
        if size_of_headers(headers) <= MAX_KEPT_HEADERS:
            return headers
        return {"duebell-headers-dropped": "too large to keep"}
    except ValueError as error:
        return {"duebell-headers-dropped": f"cannot be written again: {error}"}


def _is_too_deep(headers: dict[str, Any]) -> bool:
    level: list[Any] = [headers]
    for _ in range(MAX_KEPT_DEPTH):
        children = (value for box in level for value in (box.values() if isinstance(box, dict) else box))
        level = [value for value in children if isinstance(value, dict | list)]
    return bool(level)
