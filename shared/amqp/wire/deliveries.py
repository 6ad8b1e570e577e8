"""The messages of one consuming channel, taken out of the stream as they arrive."""

from collections.abc import Callable
from struct import error
from typing import Any

from aiormq.exceptions import InvalidFrameError

from shared.amqp.message import IncomingMessage
from shared.amqp.wire.delivery_frames import Delivery, is_delivery, put_together, read_delivery, read_message
from shared.amqp.wire.frames import BODY, FLAGS, HEAD, HEADER, Incomplete, frame_end, read_header_start
from shared.amqp.wire.properties import read_properties

# The beginning of a message waits for the rest of it up to this size; more of it is taken frame by frame.
MAX_WAITING_BYTES = 32 * 1024


class Deliveries:
    """Calls `on_message` for every message on the channel, in the order in which they arrive."""

    def __init__(self, on_message: Callable[[IncomingMessage], None]) -> None:
        self._on_message = on_message
        # Of the message that is being taken frame by frame.
        self._delivery: Delivery | None = None
        self._properties: tuple[dict[str, Any], str | None] = ({}, None)
        self._body: list[bytes] = []
        self._missing = 0

    def take(self, data: bytes, start: int) -> int | None:
        if is_delivery(data, start):
            try:
                message, end = read_message(data, start)
            except Incomplete:
                if len(data) - start < MAX_WAITING_BYTES:
                    raise
            except ValueError:
                pass  # unusual: frame by frame, then
            else:
                self._on_message(message)
                return end
        end = frame_end(data, start)
        return end if self._take_frame(data, start, end) else None

    def _take_frame(self, data: bytes, start: int, end: int) -> bool:
        if is_delivery(data, start):
            self._delivery, self._missing = read_delivery(data, start, end), 0
            return True
        kind, payload = data[start], data[start + HEAD : end - 1]
        if self._delivery is None or kind not in {HEADER, BODY}:
            return False
        if kind == HEADER:
            self._begin_body(payload)
        elif self._missing <= 0:
            raise InvalidFrameError("a body without its header")
        else:
            self._body.append(payload)
            self._missing -= len(payload)
        if self._missing <= 0:
            properties, unreadable = self._properties
            message = put_together(self._delivery, properties, b"".join(self._body), unreadable)
            self._delivery = None
            self._on_message(message)
        return True

    def _begin_body(self, header: bytes) -> None:
        try:
            self._missing = read_header_start(header)[2]
        except error as ending:
            raise InvalidFrameError("a content header is cut short") from ending
        self._properties = read_properties(header[FLAGS:])
        self._body = []
