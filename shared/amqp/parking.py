"""Parking: a message that could not be understood is published to `scheduler.parked`, body untouched, with the reasons
in headers. It is never lost, and it blocks no other message.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from shared.amqp.message import IncomingMessage, OutgoingMessage, PublishResult, copy_to
from shared.amqp.publisher import Publisher
from shared.amqp.wire import size_of_headers
from shared.errors import ParkingFailed

# All headers of a message must fit into one frame (128 KiB by default) together with the other properties.
MAX_KEPT_HEADERS = 32 * 1024
# If frames are small, a parked message keeps only the start of the reason: even the smallest frame (4 KiB) has room.
SHORT_REASON = 200
# The encoder recurses once per level. RabbitMQ's own headers have three levels.
MAX_KEPT_DEPTH = 32


async def park(publisher: Publisher, copies: Sequence[OutgoingMessage], timeout: float) -> None:
    """Publish the copies. After it returns, the broker has confirmed all of them in the parking queue."""
    results = await publisher.publish(copies, timeout)
    if any(result is not PublishResult.CONFIRMED for result in results):
        raise ParkingFailed(f"parked messages were not confirmed: {', '.join(sorted(set(results)))}")


def make_parked_copy(
    message: IncomingMessage, *, exchange: str, errors: Sequence[str], parked_by: str
) -> OutgoingMessage:
    """Return the copy that must be published and confirmed before the original is acknowledged."""
    reason = "; ".join(errors)
    where = {
        "duebell-parked-by": parked_by,
        "duebell-parked-at": datetime.now(UTC),
        "duebell-exchange": message.exchange,
        "duebell-routing-key": message.routing_key,
        # The copy gets a new message_id: a return of the broker names its message by it.
        **({"duebell-message-id": message.message_id} if message.message_id else {}),
        # RabbitMQ refuses a message whose user_id is not the user of the connection, so a header keeps it.
        **({"duebell-user-id": message.user_id} if message.user_id else {}),
    }
    return copy_to(
        message,
        exchange,
        message.routing_key,
        {**_kept_headers(message.headers), "duebell-reason": reason, "duebell-errors": list(errors), **where},
        {"duebell-headers-dropped": "too large for a frame", "duebell-reason": reason[:SHORT_REASON], **where},
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
