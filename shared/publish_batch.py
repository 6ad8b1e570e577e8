"""A batch of publishes on one channel: every frame of it in one write, then a verdict per message as confirms come in.

aiormq publishes one message at a time, with a lock, a future and a turn of the event loop each, and looks up each of
them again when a confirm comes: that costs ten times what the broker needs. So the frames are encoded here and handed
to its writer in one piece, and the channel's confirms and returns are followed here, by range: a confirm that speaks
for a thousand messages is one step. aiormq's connection, its writer and its reader stay in use.
"""

import asyncio
from collections.abc import Sequence
from uuid import uuid4

from aiormq.abc import ChannelFrame
from aiormq.channel import Channel
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from shared.outgoing import Outgoing, Verdict
from shared.publish_frames import publish_frames


class PublishBatch:
    """`verdicts` are UNKNOWN until the broker has spoken; `settled` is done when it has spoken on all of them. One at a
    time on a channel: it takes the channel's confirms and returns until the next one does.
    """

    def __init__(self, channel: Channel, messages: Sequence[Outgoing]) -> None:
        self.verdicts = [Verdict.UNKNOWN] * len(messages)
        self.settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._outstanding = len(messages)
        self._channel = channel
        self._ruled = 0  # there is a verdict on all before this one
        # A return names its message by message_id alone, so it is fresh for every publish, and ends with the message's
        # place; what stays the same between two publishes of one occurrence is the idempotency key.
        self._name = f"{uuid4().hex}-"
        number, max_body = channel.number, channel.max_content_size
        self._payload = b"".join(
            [publish_frames(message, f"{self._name}{n}", number, max_body) for n, message in enumerate(messages)]
        )
        # The broker counts what it gets. What cannot be written must not be counted here: every verdict after it would
        # be another message's.
        self._first_tag = channel.delivery_tag + 1
        channel.delivery_tag += len(messages)

    async def send(self) -> None:
        """One write: nothing else on this channel can come between."""
        # In place of aiormq's own, which would find none of these messages in its tables.
        self._channel._on_confirm_frame = self._on_confirm  # type: ignore[method-assign] # noqa: SLF001
        self._channel._on_return_frame = self._on_return  # type: ignore[method-assign] # noqa: SLF001
        await self._channel.write_queue.put(ChannelFrame(payload=self._payload, should_close=False))

    async def _on_confirm(self, frame: Basic.Ack | Basic.Nack | Basic.Reject) -> None:
        verdict = Verdict.CONFIRMED if isinstance(frame, Basic.Ack) else Verdict.NACKED
        end = (frame.delivery_tag or 0) - self._first_tag + 1
        if not isinstance(frame, Basic.Reject) and frame.multiple:
            self._rule(self._ruled, end, verdict)
            self._ruled = max(self._ruled, end)
        else:
            self._rule(end - 1, end, verdict)

    async def _on_return(self, frame: Basic.Return) -> None:
        """It comes before the message's confirm, which then changes nothing any more."""
        header = await self._channel._get_frame()  # noqa: SLF001
        if not isinstance(header, ContentHeader):
            raise TypeError(f"not the header of a returned message: {header!r}")
        message = await self._channel._read_content(frame, header)  # noqa: SLF001
        message_id = message.header.properties.message_id or ""
        if message_id.startswith(self._name):
            place = int(message_id.removeprefix(self._name))
            self._rule(place, place + 1, Verdict.RETURNED)

    def _rule(self, start: int, end: int, verdict: Verdict) -> None:
        """On those between the two that have no verdict yet. What was published before this batch is none of ours."""
        start, end = max(start, 0), min(end, len(self.verdicts))
        if end <= start:
            return
        open_ones = self.verdicts[start:end].count(Verdict.UNKNOWN)
        if open_ones == end - start:
            self.verdicts[start:end] = [verdict] * open_ones
        else:
            for place in range(start, end):
                if self.verdicts[place] is Verdict.UNKNOWN:
                    self.verdicts[place] = verdict
        self._outstanding -= open_ones
        if self._outstanding == 0 and not self.settled.done():
            self.settled.set_result(None)
