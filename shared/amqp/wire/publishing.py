"""Publishes in batches on one channel: it writes all frames of a batch at once, then sets a result per message as
confirms and returns of the broker arrive.

aiormq publishes one message at a time, with a lock, a future and a turn of the event loop for each, and looks up each
future again when a confirm comes: that costs ten times what the broker needs. So this module encodes the frames and
passes them to aiormq's writer in one piece, and it applies confirms by range: a confirm of a thousand messages is one
step.

The frames are byte for byte those of pamqp; a test compares them. But pamqp looks up every property by name and type,
and takes longer for a message than the broker does. So this module lays out a message by hand: method, header and body
of AMQP 0-9-1, joined into one piece.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from struct import Struct, error
from typing import Any
from uuid import uuid4

from aiormq.abc import ChannelFrame
from aiormq.channel import Channel
from msgspec.structs import replace
from pamqp import encode

from shared.amqp.message import OutgoingMessage, PublishResult, RawMessage
from shared.amqp.wire.deliveries import (
    ACK,
    BODY,
    FRAME_END,
    HEAD,
    HEADER,
    METHOD,
    METHOD_SIZE,
    NACK,
    RETURN,
    frame_end,
)
from shared.amqp.wire.properties import read_properties
from shared.amqp.wire.returns import Returned, Returns

_tag_and_multiple = Struct(">QB").unpack_from

BASIC = 60
PERSISTENT = b"\x02"
_FRAME_END_BYTES = bytes((FRAME_END,))
# The size of class, weight, body size and flags in a header frame. The properties follow.
HEADER_START = 14
FLAGS_SIZE = 2
# The limit of AMQP itself: sizes have 32 bits.
NO_LIMIT = 2**32 - 1

# The flags that say which properties follow, in the order of the properties.
_CONTENT_TYPE, _CONTENT_ENCODING, _HEADERS, _DELIVERY_MODE, _PRIORITY = 1 << 15, 1 << 14, 1 << 13, 1 << 12, 1 << 11
_CORRELATION_ID, _REPLY_TO, _MESSAGE_ID, _TIMESTAMP, _TYPE, _APP_ID = 1 << 10, 1 << 9, 1 << 7, 1 << 6, 1 << 5, 1 << 3

# _header_frame: type 2, channel, size; class, weight, body size, flags. _after_header: the end of that frame; type 3,
# channel, size.
_header_frame = Struct(">BHIHHQH").pack
_body_frame = Struct(">BHI").pack
_after_header = Struct(">BBHI").pack
# _publish_start: type 1, channel, size; class, method, a reserved number, length of the exchange's name. _publish_end:
# the bits, of which the first is mandatory, and the end of the frame. _raw_header_frame: as _header_frame, without the
# flags, which a raw message has in its header.
_publish_start = Struct(">BHIHHHB").pack
_publish_end = Struct(">BB").pack
_raw_header_frame = Struct(">BHIHHQ").pack
_PUBLISH_METHOD = 40
# Class, method, reserved number, two lengths and the bits.
_PUBLISH_SIZE = 9
_timestamp = Struct(">Q").pack
_length = Struct(">I").pack

# pamqp encodes tables with longer names: it shortens or refuses those that AMQP cannot carry.
_MAX_HEADER_NAME_LENGTH = 100


class PublishBatch(ABC):
    """A published batch. Its `results` are UNKNOWN until the broker answers; `answered` is done when all have one."""

    def __init__(self, size: int, first_tag: int) -> None:
        self.results = [PublishResult.UNKNOWN] * size
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._first_tag = first_tag
        self._outstanding = size
        self._answered_up_to = 0  # all messages before this place have a result

    def confirm(self, result: PublishResult, tag: int, *, multiple: bool) -> None:
        """Apply a confirm or a nack: it is for the message with this tag, or for all messages up to it."""
        end = tag - self._first_tag + 1
        if multiple:
            self._answer(self._answered_up_to, end, result)
            self._answered_up_to = max(self._answered_up_to, end)
        else:
            self._answer(end - 1, end, result)

    @abstractmethod
    def mark_returned(self, returned: Returned) -> None:
        """Apply a return. The broker sends it before the confirm of the same message, which then changes nothing."""

    def _return(self, places: Sequence[int]) -> None:
        """Count all messages as returned that the broker may mean: those at these places, or else all."""
        for place in places or range(len(self.results)):
            self._answer(place, place + 1, PublishResult.RETURNED)

    def _answer(self, start: int, end: int, result: PublishResult) -> None:
        """Set the missing results of messages `start` to `end - 1`. Places outside belong to earlier batches."""
        start, end = max(start, 0), min(end, len(self.results))
        if end <= start:
            return
        unanswered = self.results[start:end].count(PublishResult.UNKNOWN)
        if unanswered == end - start:
            self.results[start:end] = [result] * unanswered
        else:
            for place in range(start, end):
                if self.results[place] is PublishResult.UNKNOWN:
                    self.results[place] = result
        self._outstanding -= unanswered
        if self._outstanding == 0 and not self.answered.done():
            self.answered.set_result(None)


class BatchWithIds(PublishBatch):
    """A batch of messages that each have a `message_id`: a return names its message by it."""

    def __init__(self, messages: Sequence[OutgoingMessage], first_tag: int) -> None:
        super().__init__(len(messages), first_tag)
        # A message without one gets a new one for every publish.
        name = uuid4().hex
        self.message_ids = [message.message_id or f"{name}-{place}" for place, message in enumerate(messages)]
        self._messages = messages
        self._places: dict[str, list[int]] = {}  # of each message_id, once a return has come

    def mark_returned(self, returned: Returned) -> None:
        """Apply a return. If several messages of the batch have its `message_id`, or none has it, the broker may mean
        each of them, so none counts as published: a copy is better than a loss.
        """
        places = self._places_of(read_properties(returned.header)[0].get("message_id"))
        if len(places) == 1 and self._messages[places[0]].may_be_unrouted:
            self._answer(places[0], places[0] + 1, PublishResult.UNROUTED)
            return
        self._return(places)

    def _places_of(self, message_id: str | None) -> list[int]:
        if not self._places:
            for place, its_id in enumerate(self.message_ids):
                self._places.setdefault(its_id, []).append(place)
        return self._places.get(message_id, []) if message_id is not None else []


class RawBatch(PublishBatch):
    """A batch of messages with properties that other applications wrote. Many may have one `message_id`, or none: a
    return is of the message that it is equal to.
    """

    def __init__(self, messages: Sequence[RawMessage], first_tag: int) -> None:
        super().__init__(len(messages), first_tag)
        self._messages = messages
        self._places: dict[Returned, list[int]] = {}  # of equal messages, the last first, once a return has come

    def mark_returned(self, returned: Returned) -> None:
        """Apply a return. Of equal messages it means the first without a result: which of them that is makes no
        difference. If the broker has changed the message, the return may mean each message with the same exchange and
        routing key, and none of them counts as published.
        """
        if not self._places:
            for place in reversed(range(len(self._messages))):
                self._places.setdefault(_as_returned(self._messages[place]), []).append(place)
        places = self._places.get(returned, [])
        while places:
            place = places.pop()
            if self.results[place] is PublishResult.UNKNOWN:
                self._answer(place, place + 1, PublishResult.UNROUTED)
                return
        meant = [place for place, message in enumerate(self._messages) if _is_same_route(message, returned)]
        self._return(meant)


def _as_returned(message: RawMessage) -> Returned:
    return Returned(message.exchange.encode(), message.routing_key, message.header, message.body)


def _is_same_route(message: RawMessage, returned: Returned) -> bool:
    return (message.exchange.encode(), message.routing_key) == (returned.exchange, returned.routing_key)


class Confirms:
    """Publishes on one channel that nothing else uses, one batch at a time. After a batch with an UNKNOWN result the
    channel must be closed: later answers of the broker would be applied to the next batch.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._published = 0  # the broker counts the messages on the channel, and its confirms name these numbers
        self._batch: PublishBatch | None = None
        self._returns = Returns()

    @property
    def is_closed(self) -> bool:
        return self._channel.is_closed

    @property
    def closing(self) -> "asyncio.Future[None]":
        """Return a new future that is done when the channel closes, with the reason. The caller has to cancel it."""
        return self._channel.closing

    @property
    def frame_room(self) -> int:
        """Return how many bytes a frame of the connection has room for."""
        return self._channel.max_content_size if self._channel.max_content_size > 0 else NO_LIMIT

    async def publish(self, messages: Sequence[OutgoingMessage]) -> BatchWithIds:
        """Write the batch to the channel in one piece, so that no other frame of the channel comes between."""
        batch = BatchWithIds(messages, self._published + 1)
        number, max_body = self._channel.number, self._channel.max_content_size
        await self._write(
            batch, [publish_frames(*each, number, max_body) for each in zip(messages, batch.message_ids, strict=True)]
        )
        return batch

    async def publish_raw(self, messages: Sequence[RawMessage]) -> RawBatch:
        """Write the batch to the channel in one piece, as `publish` does."""
        number, max_body = self._channel.number, self._channel.max_content_size
        batch = RawBatch(messages, self._published + 1)
        await self._write(batch, [raw_frames(message, number, max_body) for message in messages])
        return batch

    async def _write(self, batch: PublishBatch, frames: Sequence[bytes]) -> None:
        # Only now, when all frames are encoded: counting a message that is never sent would shift all later results.
        self._published += len(frames)
        self._batch = batch
        await self._channel.write_queue.put(ChannelFrame(payload=b"".join(frames), should_close=False))

    def take(self, data: bytes, start: int) -> int | None:
        """Take confirms and returns, and apply them to the batch. All content on this channel is of returns."""
        end = frame_end(data, start)
        kind, payload = data[start], start + HEAD
        if kind == METHOD:
            method = data[payload : payload + METHOD_SIZE]
            if method == ACK:
                self._confirm(PublishResult.CONFIRMED, data, payload)
            elif method == NACK:
                self._confirm(PublishResult.NACKED, data, payload)
            elif method == RETURN:
                self._returns.begin(data[payload + METHOD_SIZE : end - 1])
            else:
                return None
        elif kind in {HEADER, BODY} and (returned := self._returns.add(kind, data[payload : end - 1])) and self._batch:
            self._batch.mark_returned(returned)
        return end

    def _confirm(self, result: PublishResult, data: bytes, payload: int) -> None:
        if self._batch is not None:
            tag, multiple = _tag_and_multiple(data, payload + METHOD_SIZE)
            self._batch.confirm(result, tag, multiple=bool(multiple & 1))


def publish_frames(message: OutgoingMessage, message_id: str, channel: int, max_body: int) -> bytes:
    """Return the frames that publish the message. `max_body` is the body size of a frame; 0 or less means no limit."""
    if max_body <= 0:
        max_body = NO_LIMIT
    body, size = message.body, len(message.body)
    flags, properties = _properties(message, message_id)
    if message.short_headers is not None and max_body < HEADER_START + len(properties):
        flags, properties = _properties(replace(message, headers=message.short_headers), message_id)
    publish = _publish_frame(message.exchange, message.routing_key.encode(), message.mandatory, channel)
    header = _header_frame(2, channel, HEADER_START + len(properties), BASIC, 0, size, flags)
    return b"".join((publish, header, properties, *_end_and_body(body, channel, max_body)))


def raw_frames(message: RawMessage, channel: int, max_body: int) -> bytes:
    """Return the frames that publish a message with the properties that it came with. A queue has to take it."""
    header = message.header
    return b"".join(
        (
            _publish_frame(message.exchange, message.routing_key, True, channel),
            _raw_header_frame(2, channel, HEADER_START - FLAGS_SIZE + len(header), BASIC, 0, len(message.body)),
            header,
            *_end_and_body(message.body, channel, max_body if max_body > 0 else NO_LIMIT),
        )
    )


def fits(message: RawMessage, frame_room: int) -> bool:
    """Return whether the properties fit into one frame, as they have to. The broker closes a connection over others."""
    return HEADER_START - FLAGS_SIZE + len(message.header) <= frame_room


def _end_and_body(body: bytes, channel: int, max_body: int) -> tuple[bytes, ...]:
    """Return the end of the header frame, and the frames of the body."""
    size = len(body)
    if 0 < size <= max_body:
        return _after_header(206, 3, channel, size), body, _FRAME_END_BYTES
    pieces = [body[start : start + max_body] for start in range(0, size, max_body)]
    bodies = [part for piece in pieces for part in (_body_frame(3, channel, len(piece)), piece, _FRAME_END_BYTES)]
    return _FRAME_END_BYTES, *bodies


def size_of_headers(headers: Mapping[str, Any]) -> int:
    """Return the size of the headers in an AMQP frame, in bytes. Raises ValueError if AMQP cannot carry them."""
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


# For strings that repeat from message to message.
_known_string = lru_cache(maxsize=256)(_short_string)


# The name of a field and the letter of its type: a text follows.
@lru_cache(maxsize=256)
def _known_text_field(name: str) -> bytes:
    return _short_string(name) + b"S"


# All events of a claim have the same timestamp.
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
def _publish_frame(exchange: str, routing_key: bytes, mandatory: bool, channel: int) -> bytes:
    name = exchange.encode()
    size = _PUBLISH_SIZE + len(name) + len(routing_key)
    start = _publish_start(METHOD, channel, size, BASIC, _PUBLISH_METHOD, 0, len(name))
    return b"".join((start, name, bytes((len(routing_key),)), routing_key, _publish_end(mandatory, FRAME_END)))
