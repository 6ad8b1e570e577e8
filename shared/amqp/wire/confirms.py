"""Publishing in batches on one channel: every frame of a batch in one write, then a verdict per message as the broker's
confirms and returns come in.

aiormq publishes one message at a time, with a lock, a future and a turn of the event loop each, and looks up each of
them again when a confirm comes: that costs ten times what the broker needs. So the frames are encoded here and handed
to aiormq's writer in one piece, and confirms are followed by range: one that speaks for a thousand messages is one
step.
"""

import asyncio
from collections.abc import Sequence
from struct import Struct
from uuid import uuid4

from aiormq.abc import ChannelFrame
from aiormq.channel import Channel

from shared.amqp.message import OutgoingMessage, PublishResult
from shared.amqp.wire.frames import ACK, FLAGS, HEAD, HEADER, METHOD, METHOD_SIZE, NACK, RETURN, frame_end
from shared.amqp.wire.properties import read_properties
from shared.amqp.wire.publish_frames import publish_frames

_tag_and_multiple = Struct(">QB").unpack_from


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
