"""Listens on a queue, across lost connections: events that were not acknowledged come again."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from duebell.errors import DuebellError
from duebell.handling import Listening, handle
from duebell.link import BROKER_TROUBLE, Link, lost_connections_as_errors, pause_after
from duebell.listener_queue import DECLARE_TIMEOUT, declare_queues

log = logging.getLogger("duebell")


class Listener:
    """Listens on one queue. `ready` is set when events can come; the owner sets `stop`."""

    def __init__(self, link: Link, events_exchange: str, listening: Listening, grace: float) -> None:
        self._link = link
        self._events_exchange = events_exchange
        self._listening = listening
        self._grace = grace
        self._slots = asyncio.Semaphore(listening.prefetch)
        self._handlers: set[asyncio.Task[None]] = set()
        self._tries = 0
        self.ready = asyncio.Event()
        self.stop = asyncio.Event()

    async def run(self) -> None:
        """Listen until the stop, and then until the handlers under way are done, or the grace is over. Raises what
        keeps the listener from starting; once it has started, it goes on whatever the broker does.
        """
        try:
            while not self.stop.is_set():
                try:
                    await first_of(self._link.wait_until_up(), self.stop.wait())
                    if not self.stop.is_set():
                        await self._listen()
                except (DuebellError, *BROKER_TROUBLE) as error:
                    if isinstance(error, DuebellError) and not self.ready.is_set():
                        raise
                    log.warning("listening on %s was interrupted: %s", self._listening.queue, error)
                    await first_of(self.stop.wait(), asyncio.sleep(pause_after(self._tries)))
                    self._tries += 1
        finally:
            await _end(self._handlers)

    async def _listen(self) -> None:
        async with self._link.channel() as channel:
            lost, inbox = asyncio.Event(), asyncio.Queue[AbstractIncomingMessage]()  # bounded by the prefetch
            channel.close_callbacks.add(lambda *_: lost.set())
            # A queue that is deleted meanwhile cancels the consumer and leaves the channel open: start afresh then too.
            (await channel.get_underlay_channel()).on_consumer_cancel_callbacks.add(lambda *_: lost.set())
            pump = asyncio.create_task(self._pump(inbox))
            try:
                await self._consume(channel, inbox)
                self.ready.set()
                self._tries = 0
                await first_of(lost.wait(), self.stop.wait())
            finally:
                await _end({pump})
            if not self.stop.is_set():
                raise ConnectionError("the broker closed the channel or cancelled the consumer")
            if self._handlers:
                # What they finish is acknowledged on this channel; what is not begun goes back when it closes.
                await asyncio.wait(self._handlers, timeout=self._grace)

    async def _consume(self, channel: AbstractChannel, inbox: "asyncio.Queue[AbstractIncomingMessage]") -> None:
        listening = self._listening
        if listening.declare:
            await declare_queues(self._link.channel, self._events_exchange, listening.topic, listening.queue)
        with lost_connections_as_errors():
            async with asyncio.timeout(DECLARE_TIMEOUT):
                await channel.set_qos(prefetch_count=listening.prefetch)
                queue = await channel.get_queue(listening.queue, ensure=False)
                await queue.consume(inbox.put)

    async def _pump(self, inbox: "asyncio.Queue[AbstractIncomingMessage]") -> None:
        while True:
            message = await inbox.get()
            # After a reconnect the handlers of before may still be at work: the bound is on all of them.
            await self._slots.acquire()
            task = asyncio.create_task(handle(message, self._listening))
            self._handlers.add(task)
            task.add_done_callback(self._over)

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._handlers.discard(task)
        self._slots.release()


async def first_of(*waits: Coroutine[Any, Any, object]) -> None:
    tasks = {asyncio.create_task(wait) for wait in waits}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _end(tasks)


async def _end(tasks: "set[asyncio.Task[Any]] | set[asyncio.Task[None]]") -> None:
    for task in (ending := list(tasks)):
        task.cancel()
    if ending:
        await asyncio.wait(ending)
