"""Publishing in batches on one channel: every frame of a batch in one write, then a verdict per message as the broker's
confirms and returns come in.

aiormq publishes one message at a time, with a lock, a future and a turn of the event loop each, and looks up each of
them again when a confirm comes: that costs ten times what the broker needs. So the frames are encoded here and handed
to aiormq's writer in one piece, and confirms are followed by range: one that speaks for a thousand messages is one
step.

The frames are the same bytes that pamqp would write, which a test holds them to. But pamqp looks at every property by
its name and type, and takes longer for a message than the broker does: here a message is laid out by hand, as method,
header and body of AMQP 0-9-1, joined into one piece.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from struct import Struct, error
from typing import Any
from uuid import uuid4

import pamqp.frame
from aiormq.abc import ChannelFrame
from aiormq.channel import Channel
from msgspec.structs import replace
from pamqp import encode
from pamqp.commands import Basic

from shared.amqp.message import OutgoingMessage, PublishResult
from shared.amqp.wire.deliveries import ACK, FLAGS, HEAD, HEADER, METHOD, METHOD_SIZE, NACK, RETURN, frame_end
from shared.amqp.wire.properties import read_properties

_tag_and_multiple = Struct(">QB").unpack_from

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


class PublishBatch:
    """`verdicts` are UNKNOWN until the broker has spoken; `settled` is done when it has spoken on all of them."""

    def __init__(self, messages: Sequence[OutgoingMessage], first_tag: int) -> None:
        # A return names its message by message_id alone. What has none of its own gets one that is fresh for every
        # publish.
        name = uuid4().hex
        self.message_ids = [message.message_id or f"{name}-{place}" for place, message in enumerate(messages)]
        self.verdicts = [PublishResult.UNKNOWN] * len(messages)
        self.settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._first_tag = first_tag
        self._outstanding = len(messages)
        self._ruled = 0  # there is a verdict on all before this one

    def confirm(self, verdict: PublishResult, tag: int, *, multiple: bool) -> None:
        end = tag - self._first_tag + 1
        if multiple:
            self._rule(self._ruled, end, verdict)
            self._ruled = max(self._ruled, end)
        else:
            self._rule(end - 1, end, verdict)

    def give_back(self, message_id: str | None) -> None:
        """A return comes before the message's confirm, which then changes nothing any more. If several messages of the
        batch have this id, or none has it, then the broker may mean each of them, and none of them counts as published:
        a copy is better than a loss.
        """
        places = [place for place, its_id in enumerate(self.message_ids) if its_id == message_id]
        for place in places or range(len(self.verdicts)):
            self._rule(place, place + 1, PublishResult.RETURNED)

    def _rule(self, start: int, end: int, verdict: PublishResult) -> None:
        """Sets the verdict on messages `start` to `end - 1` that have none. Places outside the batch (confirms of
        earlier publishes) are ignored.
        """
        start, end = max(start, 0), min(end, len(self.verdicts))
        if end <= start:
            return
        open_ones = self.verdicts[start:end].count(PublishResult.UNKNOWN)
        if open_ones == end - start:
            self.verdicts[start:end] = [verdict] * open_ones
        else:
            for place in range(start, end):
                if self.verdicts[place] is PublishResult.UNKNOWN:
                    self.verdicts[place] = verdict
        self._outstanding -= open_ones
        if self._outstanding == 0 and not self.settled.done():
            self.settled.set_result(None)


class Confirms:
    """Publishes on one channel that is used for nothing else, one batch at a time. The channel must be given up after a
    batch that has an UNKNOWN verdict: what the broker says of it later would be taken for the next one's.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._published = 0  # the broker counts what it gets on the channel, and its confirms name the numbers
        self._batch: PublishBatch | None = None

    @property
    def is_closed(self) -> bool:
        return self._channel.is_closed

    @property
    def closing(self) -> "asyncio.Future[None]":
        """Done when the channel closes, with the reason. A future of the caller's own, to be cancelled after use."""
        return self._channel.closing

    async def publish(self, messages: Sequence[OutgoingMessage]) -> PublishBatch:
        """Returns when the batch is on its way, in one write: nothing else on this channel can come between."""
        batch = PublishBatch(messages, self._published + 1)
        number, max_body = self._channel.number, self._channel.max_content_size
        payload = b"".join(
            [publish_frames(*each, number, max_body) for each in zip(messages, batch.message_ids, strict=True)]
        )
        # What cannot be written must not be counted: every verdict after it would be another message's.
        self._published += len(messages)
        self._batch = batch
        await self._channel.write_queue.put(ChannelFrame(payload=payload, should_close=False))
        return batch

    def take(self, data: bytes, start: int) -> int | None:
        """Confirms and returns are for the batch. Content on this channel can only be that of a return."""
        end = frame_end(data, start)
        kind, payload = data[start], start + HEAD
        if kind == METHOD:
            method = data[payload : payload + METHOD_SIZE]
            if method == ACK:
                self._confirm(PublishResult.CONFIRMED, data, payload)
            elif method == NACK:
                self._confirm(PublishResult.NACKED, data, payload)
            elif method != RETURN:
                return None
        elif kind == HEADER and self._batch is not None:
            properties, _ = read_properties(data[payload + FLAGS : end - 1])
            self._batch.give_back(properties.get("message_id"))
        return end

    def _confirm(self, verdict: PublishResult, data: bytes, payload: int) -> None:
        if self._batch is not None:
            tag, multiple = _tag_and_multiple(data, payload + METHOD_SIZE)
            self._batch.confirm(verdict, tag, multiple=bool(multiple & 1))


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
