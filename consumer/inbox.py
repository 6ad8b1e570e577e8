"""Messages from the inbox, in batches: a batch closes when it is full or a few milliseconds old."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from shared.broker import CHANNEL_TIMEOUT
from shared.lifecycle import Stop, first_of


class Inbox:
    """The receiving end of one channel. What it holds and has not handed out goes back when the channel closes."""

    def __init__(self, channel: AbstractChannel) -> None:
        self._channel = channel
        self._received: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()  # bounded by the prefetch
        self._lost = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def consuming(cls, channel: AbstractChannel, queue_name: str) -> AsyncIterator["Inbox"]:
        inbox = cls(channel)
        channel.close_callbacks.add(lambda *_: inbox._lost.set())
        async with asyncio.timeout(CHANNEL_TIMEOUT):
            queue = await channel.get_queue(queue_name)
            # A queue that is deleted under us cancels the consumer and leaves the channel open: start afresh then too.
            underlay = await channel.get_underlay_channel()
            underlay.on_consumer_cancel_callbacks.add(lambda *_: inbox._lost.set())
            await queue.consume(inbox._take, timeout=CHANNEL_TIMEOUT)
        yield inbox

    async def _take(self, message: AbstractIncomingMessage) -> None:
        self._received.put_nowait(message)

    @property
    def is_lost(self) -> bool:
        return self._lost.is_set() or self._channel.is_closed

    async def sleep(self, seconds: float) -> None:
        """Shorter if the channel is lost."""
        await first_of(self._lost.wait(), asyncio.sleep(seconds))

    async def next_batch(self, size: int, max_wait: float, stop: Stop) -> list[AbstractIncomingMessage]:
        """At least one message; empty if the channel was lost or the stop came first."""
        if self._received.empty():
            waiting = asyncio.ensure_future(self._received.get())
            await first_of(asyncio.shield(waiting), self._lost.wait(), stop.wait())
            if not waiting.done():
                waiting.cancel()
                return []
            batch = [waiting.result()]
        else:
            batch = []
        if stop.requested or self.is_lost:
            return []
        deadline = asyncio.get_running_loop().time() + max_wait
        while len(batch) < size:
            if not self._received.empty():
                batch.append(self._received.get_nowait())
                continue
            remaining = deadline - asyncio.get_running_loop().time()
            if remaining <= 0:
                break
            try:
                batch.append(await asyncio.wait_for(self._received.get(), remaining))
            except TimeoutError:
                break
        return batch
