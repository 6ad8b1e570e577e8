"""A batch of publishes on one channel: every frame of it in one write, then a verdict per message as confirms come in.

aiormq publishes one message at a time, with a lock, a future and a turn of the event loop each, which costs ten times
what the broker needs. So the frames are encoded here and handed to its writer in one piece, and its table of
outstanding confirms gets slots of ours in place of futures. Its connection, its reader and its bookkeeping of delivery
tags and returns stay in use.
"""

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast
from uuid import uuid4

import pamqp.frame
from aiormq.abc import ChannelFrame
from aiormq.channel import Channel
from aiormq.exceptions import PublishError
from pamqp.body import ContentBody
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from shared.outgoing import Outgoing, Verdict

PERSISTENT = 2


class PublishBatch:
    """`verdicts` are UNKNOWN until the broker has spoken; `settled` is done when it has spoken on all of them."""

    def __init__(self, channel: Channel, messages: Sequence[Outgoing]) -> None:
        self.verdicts = [Verdict.UNKNOWN] * len(messages)
        self.settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._outstanding = len(messages)
        self._channel = channel
        self._message_ids: list[str] = []
        self._payload = b"".join(self._enlist(index, message) for index, message in enumerate(messages))

    async def send(self) -> None:
        """One write: nothing else on this channel can come between."""
        await self._channel.write_queue.put(ChannelFrame(payload=self._payload, should_close=False))

    def forget(self) -> None:
        """To be called in the end, whatever happened."""
        for message_id in self._message_ids:
            self._channel.message_id_delivery_tag.pop(message_id, None)

    def rule(self, index: int, verdict: Verdict) -> None:
        self.verdicts[index] = verdict
        self._outstanding -= 1
        if self._outstanding == 0 and not self.settled.done():
            self.settled.set_result(None)

    def _enlist(self, index: int, message: Outgoing) -> bytes:
        """Takes the next delivery tag for the message, and returns its frames."""
        channel = self._channel
        # Returns are matched by message_id, so it is fresh for every publish; what stays the same between two publishes
        # of one occurrence is the idempotency key.
        message_id = uuid4().hex
        self._message_ids.append(message_id)
        channel.delivery_tag += 1
        channel.confirmations[channel.delivery_tag] = cast("asyncio.Future[Any]", _Slot(self, index))
        channel.message_id_delivery_tag[message_id] = channel.delivery_tag
        return _frames(channel, message, message_id)


class _Slot:
    """Stands where aiormq expects a future, as far as it uses one."""

    __slots__ = ("_batch", "_done", "_index")

    def __init__(self, batch: PublishBatch, index: int) -> None:
        self._batch = batch
        self._index = index
        self._done = False

    def done(self) -> bool:
        return self._done

    def cancelled(self) -> bool:
        return False

    def set_result(self, _: object) -> None:
        self._rule(Verdict.CONFIRMED)

    def set_exception(self, error: BaseException) -> None:
        self._rule(Verdict.RETURNED if isinstance(error, PublishError) else Verdict.NACKED)

    def _rule(self, verdict: Verdict) -> None:
        self._done = True
        self._batch.rule(self._index, verdict)


def _frames(channel: Channel, message: Outgoing, message_id: str) -> bytes:
    number, size = channel.number, channel.max_content_size
    properties = Basic.Properties(
        message_id=message_id,
        delivery_mode=PERSISTENT,
        content_type=message.content_type,
        content_encoding=message.content_encoding,
        priority=message.priority,
        app_id=message.app_id,
        message_type=message.type,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        timestamp=message.timestamp,
        headers=message.headers or None,
    )
    return b"".join(
        (
            _publish_frame(message.exchange, message.routing_key, message.mandatory, number),
            pamqp.frame.marshal(ContentHeader(body_size=len(message.body), properties=properties), number),
            *(
                pamqp.frame.marshal(ContentBody(message.body[start : start + size]), number)
                for start in range(0, len(message.body), size)
            ),
        )
    )


@lru_cache(maxsize=4096)
def _publish_frame(exchange: str, routing_key: str, mandatory: bool, number: int) -> bytes:
    publish = Basic.Publish(exchange=exchange, routing_key=routing_key, mandatory=mandatory)
    return pamqp.frame.marshal(publish, number)
