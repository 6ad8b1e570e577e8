"""AMQP 0-9-1 frames that arrive: where each ends, and the messages of a consuming channel that they carry. No I/O.

Nearly all messages come as three frames in one piece: Basic.Deliver, header and body, with properties that are texts,
numbers or a timestamp, and headers that are texts. `read_message` decodes such a message at once; an object per frame
would take several times as long. `Deliveries` decodes all other messages frame by frame.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from struct import Struct, error
from typing import Any

from aiormq.exceptions import InvalidFrameError
from pamqp.commands import Basic

from shared.amqp.message import IncomingMessage
from shared.amqp.wire.properties import MAX_FIELDS, OTHER_KINDS, SMALLEST_TEXT_FIELD, read_properties

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
KINDS = frozenset((METHOD, HEADER, BODY, HEARTBEAT))
HEAD, FRAME_END = 7, 0xCE

read_head = Struct(">BHI").unpack_from  # kind, channel, length
_method = Struct(">HH").pack

# The payload of a method frame begins with its class and method.
TUNE = _method(10, 30)
CLOSINGS = (_method(20, 40), _method(20, 41))  # Channel.Close and Channel.CloseOk
RETURN, DELIVER, ACK, NACK = _method(60, 50), _method(60, 60), _method(60, 80), _method(60, 120)
METHOD_SIZE = 4

# The payload of a content header begins with class, weight, size of the body; flags and properties follow.
read_header_start = Struct(">HHQH").unpack_from
FLAGS = 12

_tag_and_redelivered = Struct(">qB").unpack_from
_HEADER_START_SIZE = 14
MAX_NAME_BYTES = 255
_length = Struct(">I").unpack_from
_seconds = Struct(">Q").unpack_from
_TEXT = ord("S")
# A larger table might exceed MAX_FIELDS.
_MAX_TABLE_BYTES = MAX_FIELDS * SMALLEST_TEXT_FIELD
# pamqp reads a larger timestamp as milliseconds.
_LAST_SECOND = 0xFFFFFFFF

# All but cluster_id, which AMQP has given up and no client sends.
_KNOWN_PROPERTIES = sum(flag for name, flag in Basic.Properties.flags.items() if name != "cluster_id")

Delivery = tuple[int, str, str, bytes, bool]  # delivery tag, exchange, routing key, its bytes, redelivered

# An incomplete message waits for its rest up to this size. A larger one is taken frame by frame.
MAX_WAITING_BYTES = 32 * 1024


class Incomplete(Exception):
    """Part of the frame, or of the message, has not arrived yet."""


def frame_end(data: bytes, start: int) -> int:
    """Return the place after the frame that starts at `start`. Raises Incomplete if part of it has not arrived."""
    if len(data) < start + HEAD:
        raise Incomplete
    end: int = start + HEAD + read_head(data, start)[2] + 1
    if len(data) < end:
        raise Incomplete
    if data[end - 1] != FRAME_END:
        raise InvalidFrameError("a frame does not end where it should")
    return end


class Deliveries:
    """Calls `on_message` for every message on the channel, in the order in which they arrive."""

    def __init__(self, on_message: Callable[[IncomingMessage], None]) -> None:
        self._on_message = on_message
        # The state of the message that is being taken frame by frame.
        self._delivery: Delivery | None = None
        self._properties: tuple[dict[str, Any], str | None] = ({}, None)
        self._header = b""
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
                pass  # an unusual message: take it frame by frame
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
            message = put_together(self._delivery, properties, b"".join(self._body), unreadable, self._header)
            self._delivery = None
            self._on_message(message)
        return True

    def _begin_body(self, header: bytes) -> None:
        try:
            self._missing = read_header_start(header)[2]
        except error as ending:
            raise InvalidFrameError("a content header is cut short") from ending
        self._header = header[FLAGS:]
        self._properties = read_properties(self._header)
        self._body = []


class Unusual(ValueError):
    """The fast decoder declines this message. `Deliveries` then reads it frame by frame."""


def is_delivery(data: bytes, start: int) -> bool:
    """Return whether the frame at `start` begins a message."""
    return data[start] == METHOD and data.startswith(DELIVER, start + HEAD)


def read_message(data: bytes, start: int) -> tuple[IncomingMessage, int]:
    """Return the message at `start` and the place after it. Raises ValueError if it is unusual, or Incomplete."""
    end_of_method, end_of_header, end = _ends(data, start)
    delivery = read_delivery(data, start, end_of_method)
    try:
        values = _read_properties(data, end_of_method + HEAD, end_of_header)
    except (IndexError, error) as ending:
        raise Unusual from ending
    body = data[end_of_header + HEAD : end - 1] if end > end_of_header else b""
    header = data[end_of_method + HEAD + FLAGS : end_of_header - 1]
    return put_together(delivery, values, body, None, header), end


def put_together(
    delivery: Delivery, values: dict[str, Any], body: bytes, unreadable: str | None, header: bytes
) -> IncomingMessage:
    """Make a message of its parts. `values` has the properties under the names of pamqp, `header` their bytes."""
    tag, exchange, routing_key, key_bytes, redelivered = delivery
    get = values.get
    return IncomingMessage(
        tag,
        body,
        exchange,
        routing_key,
        get("message_type"),
        get("content_type"),
        get("content_encoding"),
        get("priority"),
        get("message_id"),
        get("app_id"),
        get("correlation_id"),
        get("reply_to"),
        get("timestamp"),
        get("headers") or {},
        unreadable,
        get("user_id") or None,
        header,
        key_bytes,
        redelivered,
    )


def _ends(data: bytes, start: int) -> tuple[int, int, int]:
    """Return where method, header and body end, if they follow each other. An empty body has no frame."""
    channel, end_of_method = _frame(data, start, METHOD)
    same_channel, end_of_header = _frame(data, end_of_method, HEADER)
    if same_channel != channel or end_of_header - end_of_method <= HEAD + _HEADER_START_SIZE:
        raise Unusual
    body_size = read_header_start(data, end_of_method + HEAD)[2]
    if not body_size:
        return end_of_method, end_of_header, end_of_header
    same_channel, end = _frame(data, end_of_header, BODY)
    if same_channel != channel or end - end_of_header != HEAD + body_size + 1:  # several body frames, or a wrong size
        raise Unusual
    return end_of_method, end_of_header, end


def _frame(data: bytes, start: int, kind: int) -> tuple[int, int]:
    """Check the frame at `start`. Return its channel and where it ends."""
    if len(data) < start + HEAD:
        raise Incomplete
    its_kind, channel, size = read_head(data, start)
    if its_kind != kind:
        raise Unusual
    end = start + HEAD + size + 1
    if len(data) < end:
        raise Incomplete
    if data[end - 1] != FRAME_END:
        raise Unusual
    return channel, end


def read_delivery(data: bytes, start: int, end: int) -> Delivery:
    """Decode a Basic.Deliver frame. In a name that is not UTF-8, escapes replace the invalid bytes."""
    try:
        place = start + HEAD + METHOD_SIZE
        place += 1 + data[place]  # the consumer tag
        tag, redelivered = _tag_and_redelivered(data, place)
        place += 9
        key = place + 1 + data[place]
        after = key + 1 + data[key]
    except (IndexError, error):
        after = -1
    if after != end - 1:
        raise InvalidFrameError("a delivery does not end where it should")
    routing_key = data[key + 1 : after]
    return tag, _readable(data[place + 1 : key]), _readable(routing_key), routing_key, bool(redelivered & 1)


def _readable(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name.decode("ascii", "backslashreplace")[:MAX_NAME_BYTES]


def _read_properties(data: bytes, place: int, end: int) -> dict[str, Any]:
    flags = read_header_start(data, place)[3]
    place += _HEADER_START_SIZE
    values: dict[str, Any] = {}
    for name, kind in _layout(flags):
        if kind == "shortstr":
            after = place + 1 + data[place]
            values[name] = data[place + 1 : after].decode()
            place = after
        elif kind == "octet":
            values[name] = data[place]
            place += 1
        elif kind == "timestamp":
            values[name] = _moment(_seconds(data, place)[0])
            place += 8
        else:
            values[name], place = _read_texts(data, place)
    if place != end - 1:  # a text was cut off, or bytes follow the last property
        raise Unusual
    return values


# Applications that publish a lot publish the same properties each time.
@lru_cache(maxsize=256)
def _layout(flags: int) -> tuple[tuple[str, str], ...]:
    """Return the names and types of the properties that the flags announce, in order."""
    if flags & ~_KNOWN_PROPERTIES:
        raise Unusual
    present = (name for name, flag in Basic.Properties.flags.items() if flags & flag)
    return tuple((name, OTHER_KINDS.get(name, "shortstr")) for name in present)


# All events of a claim have the same timestamp.
@lru_cache(maxsize=256)
def _moment(seconds: int) -> datetime:
    if seconds > _LAST_SECOND:
        raise Unusual
    return datetime.fromtimestamp(seconds, UTC)


def _read_texts(data: bytes, place: int) -> tuple[dict[str, str], int]:
    """Decode a table that has only texts. Return it and where it ends."""
    size = _length(data, place)[0]
    if size > _MAX_TABLE_BYTES:
        raise Unusual
    place += 4
    end = place + size
    texts: dict[str, str] = {}
    while place < end:
        value = place + 1 + data[place]
        if data[value] != _TEXT:
            raise Unusual
        after = value + 5 + _length(data, value + 1)[0]
        texts[data[place + 1 : value].decode()] = data[value + 5 : after].decode()
        place = after
    if place != end:
        raise Unusual
    return texts, end
