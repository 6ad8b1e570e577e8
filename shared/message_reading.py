"""A message of an inbox, read from its three frames at once: Basic.Deliver, header and body. Pure.

That is how nearly all of them come: in one piece, with properties that are texts, numbers or a moment, and headers that
are texts. pamqp would make objects of each frame, and look at each property by name and type, which takes several times
as long. Whatever is unusual is left to it.
"""

from datetime import UTC, datetime
from functools import lru_cache
from struct import Struct, error
from typing import Any

from pamqp.commands import Basic

from shared.property_reading import MOST_FIELDS, SMALLEST_TEXT_FIELD
from shared.received import Received

# Frames of other consumers are none of ours: whoever asked for them expects them one by one.
CONSUMER_TAG = "duebell"

HEAD, END = 7, 0xCE
METHOD, HEADER, BODY = 1, 2, 3

_head = Struct(">BHI").unpack_from  # kind, channel, length
_TO_US = Struct(">HHB").pack(60, 60, len(CONSUMER_TAG)) + CONSUMER_TAG.encode()  # class, method, whose it is
_delivery_tag = Struct(">q").unpack_from
_header_start = Struct(">HHQH").unpack_from  # class, weight, size of the body, flags
_HEADER_START_SIZE = 14
_length = Struct(">I").unpack_from
_seconds = Struct(">Q").unpack_from
_TEXT = ord("S")
# A larger table might have more fields than are read.
_LARGEST_TABLE = MOST_FIELDS * SMALLEST_TEXT_FIELD
# Beyond it pamqp takes a timestamp for milliseconds.
_LAST_SECOND = 0xFFFFFFFF

_SHORT_STRING, _TABLE, _OCTET, _TIMESTAMP = range(4)
_OTHER_KINDS = {"headers": _TABLE, "delivery_mode": _OCTET, "priority": _OCTET, "timestamp": _TIMESTAMP}
# The cluster_id means nothing any more; nobody sends it.
_KNOWN_PROPERTIES = sum(flag for name, flag in Basic.Properties.flags.items() if name != "cluster_id")


class Unusual(ValueError):
    """Not to be read here."""


class Incomplete(Exception):
    """The rest of it is still to come."""


def is_to_us(data: bytes, start: int) -> bool:
    """Whether the frame that starts there is the first of a message for an inbox."""
    return data[start] == METHOD and data.startswith(_TO_US, start + HEAD)


def frame_end(data: bytes, start: int) -> int:
    if len(data) < start + HEAD:
        raise Incomplete
    end: int = start + HEAD + _head(data, start)[2] + 1
    if len(data) < end:
        raise Incomplete
    return end


def read_message(data: bytes, start: int) -> tuple[Received, int, int]:
    """It, its channel, and where it ends. ValueError if it is unusual."""
    channel, end_of_method, end_of_header, end = _ends(data, start)
    try:
        tag, exchange, routing_key = _read_delivery(data, start + HEAD + len(_TO_US), end_of_method)
        get = _read_properties(data, end_of_method + HEAD, end_of_header).get
    except (IndexError, error) as ending:
        raise Unusual from ending
    body = data[end_of_header + HEAD : end - 1] if end > end_of_header else b""
    message = Received(
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
        None,
        get("user_id") or None,
    )
    return message, channel, end


def _ends(data: bytes, start: int) -> tuple[int, int, int, int]:
    """Their channel, and where method, header and body end, if they follow each other. A body that is empty has no
    frame of its own.
    """
    channel, end_of_method = _frame(data, start, METHOD)
    same_channel, end_of_header = _frame(data, end_of_method, HEADER)
    if same_channel != channel or end_of_header - end_of_method <= HEAD + _HEADER_START_SIZE:
        raise Unusual
    body_size = _header_start(data, end_of_method + HEAD)[2]
    if not body_size:
        return channel, end_of_method, end_of_header, end_of_header
    same_channel, end = _frame(data, end_of_header, BODY)
    if same_channel != channel or end - end_of_header != HEAD + body_size + 1:  # there are several
        raise Unusual
    return channel, end_of_method, end_of_header, end


def _frame(data: bytes, start: int, kind: int) -> tuple[int, int]:
    """Its channel, and where it ends."""
    end = frame_end(data, start)
    its_kind, channel, _ = _head(data, start)
    if its_kind != kind or data[end - 1] != END:
        raise Unusual
    return channel, end


def _read_delivery(data: bytes, place: int, end: int) -> tuple[int, str, str]:
    (tag,) = _delivery_tag(data, place)
    place += 9  # and whether it was delivered before
    key = place + 1 + data[place]
    after = key + 1 + data[key]
    if after != end - 1:
        raise Unusual
    return tag, data[place + 1 : key].decode(), data[key + 1 : after].decode()


def _read_properties(data: bytes, place: int, end: int) -> dict[str, Any]:
    flags = _header_start(data, place)[3]
    place += _HEADER_START_SIZE
    values: dict[str, Any] = {}
    for name, kind in _layout(flags):
        if kind == _SHORT_STRING:
            after = place + 1 + data[place]
            values[name] = data[place + 1 : after].decode()
            place = after
        elif kind == _OCTET:
            values[name] = data[place]
            place += 1
        elif kind == _TIMESTAMP:
            values[name] = _moment(_seconds(data, place)[0])
            place += 8
        else:
            values[name], place = _read_texts(data, place)
    if place != end - 1:  # a text that is shorter than it says, or something else after the last property
        raise Unusual
    return values


# Applications that publish a lot publish the same properties each time.
@lru_cache(maxsize=256)
def _layout(flags: int) -> tuple[tuple[str, int], ...]:
    """Which properties follow, in the order of the wire."""
    if flags & ~_KNOWN_PROPERTIES:
        raise Unusual
    present = (name for name, flag in Basic.Properties.flags.items() if flags & flag)
    return tuple((name, _OTHER_KINDS.get(name, _SHORT_STRING)) for name in present)


# All events of a claim have the same.
@lru_cache(maxsize=256)
def _moment(seconds: int) -> datetime:
    if seconds > _LAST_SECOND:
        raise Unusual
    return datetime.fromtimestamp(seconds, UTC)


def _read_texts(data: bytes, place: int) -> tuple[dict[str, str], int]:
    """A table of nothing but texts, and where it ends."""
    size = _length(data, place)[0]
    if size > _LARGEST_TABLE:
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
