"""A message as the frames that publish it. Pure.

The same bytes that pamqp would write, which a test holds it to; but pamqp looks at every property by its name and type,
and takes longer for a message than the broker does. What is written here is written once for each message of ours, so
it is laid out by hand: method, header and body of AMQP 0-9-1, joined into one piece.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from struct import Struct, error
from typing import Any

import pamqp.frame
from msgspec.structs import replace
from pamqp import encode
from pamqp.commands import Basic

from shared.amqp.message import OutgoingMessage

BASIC = 60
PERSISTENT = b"\x02"
FRAME_END = b"\xce"
# Of a header frame: class, weight, size of the body, flags. The properties follow.
HEADER_START = 14
# Of AMQP itself: sizes have 32 bits.
NO_LIMIT = 2**32 - 1

# Which properties follow, in the order in which they do.
_CONTENT_TYPE, _CONTENT_ENCODING, _HEADERS, _DELIVERY_MODE, _PRIORITY = 1 << 15, 1 << 14, 1 << 13, 1 << 12, 1 << 11
_CORRELATION_ID, _REPLY_TO, _MESSAGE_ID, _TIMESTAMP, _TYPE, _APP_ID = 1 << 10, 1 << 9, 1 << 7, 1 << 6, 1 << 5, 1 << 3

# Frame type 2, channel, size; class, weight, size of the body, flags. And the end of it, frame type 3, channel, size.
_header_frame = Struct(">BHIHHQH").pack
_body_frame = Struct(">BHI").pack
_after_header = Struct(">BBHI").pack
_timestamp = Struct(">Q").pack
_length = Struct(">I").pack

# Longer names than this are left to pamqp, which knows what to do with them.
_MAX_HEADER_NAME_LENGTH = 100


def publish_frames(message: OutgoingMessage, message_id: str, channel: int, max_body: int) -> bytes:
    """`max_body` is what a frame of this connection can hold; nothing or less: there is no limit."""
    if max_body <= 0:
        max_body = NO_LIMIT
    body, size = message.body, len(message.body)
    flags, properties = _properties(message, message_id)
    if message.short_headers is not None and max_body < HEADER_START + len(properties):
        flags, properties = _properties(replace(message, headers=message.short_headers), message_id)
    publish = _publish_frame(message.exchange, message.routing_key, message.mandatory, channel)
    header = _header_frame(2, channel, HEADER_START + len(properties), BASIC, 0, size, flags)
    if 0 < size <= max_body:
        return b"".join((publish, header, properties, _after_header(206, 3, channel, size), body, FRAME_END))
    pieces = [body[start : start + max_body] for start in range(0, size, max_body)]
    bodies = [part for piece in pieces for part in (_body_frame(3, channel, len(piece)), piece, FRAME_END)]
    return b"".join((publish, header, properties, FRAME_END, *bodies))


def size_of_headers(headers: Mapping[str, Any]) -> int:
    """In bytes on the wire. Raises ValueError if AMQP cannot carry them."""
    try:
        return len(encode.field_table(dict(headers)))
    except (TypeError, ArithmeticError, error) as problem:
        raise ValueError(str(problem)) from problem


def _properties(message: OutgoingMessage, message_id: str) -> tuple[int, bytes]:
    flags = _DELIVERY_MODE | _MESSAGE_ID
    parts: list[bytes] = []
    if message.content_type:
        flags |= _CONTENT_TYPE
        parts.append(_known_string(message.content_type))
    if message.content_encoding:
        flags |= _CONTENT_ENCODING
        parts.append(_short_string(message.content_encoding))
    if message.headers:
        flags |= _HEADERS
        parts.append(_table(message.headers))
    parts.append(PERSISTENT)
    if message.priority is not None:
        flags |= _PRIORITY
        parts.append(bytes((message.priority,)))
    if message.correlation_id:
        flags |= _CORRELATION_ID
        parts.append(_short_string(message.correlation_id))
    if message.reply_to:
        flags |= _REPLY_TO
        parts.append(_short_string(message.reply_to))
    parts.append(_short_string(message_id))
    if message.timestamp is not None:
        flags |= _TIMESTAMP
        parts.append(_known_timestamp(message.timestamp))
    if message.type:
        flags |= _TYPE
        parts.append(_known_string(message.type))
    if message.app_id:
        flags |= _APP_ID
        parts.append(_short_string(message.app_id))
    return flags, b"".join(parts)


def _short_string(text: str) -> bytes:
    encoded = text.encode()
    return bytes((len(encoded),)) + encoded


# For what is the same in message after message.
_known_string = lru_cache(maxsize=256)(_short_string)


# The name of a field, and that a text follows.
@lru_cache(maxsize=256)
def _known_text_field(name: str) -> bytes:
    return _short_string(name) + b"S"


# All events of a claim have the same.
@lru_cache(maxsize=16)
def _known_timestamp(moment: datetime) -> bytes:
    return _timestamp(int(moment.timestamp()))


def _table(headers: Mapping[str, Any]) -> bytes:
    parts: list[bytes] = []
    for name, value in sorted(headers.items()) if len(headers) > 1 else headers.items():
        if type(value) is not str or len(name) > _MAX_HEADER_NAME_LENGTH:
            return encode.field_table(dict(headers))
        text = value.encode()
        parts += (_known_text_field(name), _length(len(text)), text)
    table = b"".join(parts)
    return _length(len(table)) + table


@lru_cache(maxsize=4096)
def _publish_frame(exchange: str, routing_key: str, mandatory: bool, channel: int) -> bytes:
    publish = Basic.Publish(exchange=exchange, routing_key=routing_key, mandatory=mandatory)
    return pamqp.frame.marshal(publish, channel)
