"""`Scheduler`: what an application uses, to send commands and to listen."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Unpack

from duebell.commands import Commands
from duebell.errors import Unreachable
from duebell.handling import Handler, Listening, ListeningOptions
from duebell.link import Link
from duebell.listening import Listener, first_of
from duebell.names import EVENTS_EXCHANGE

# How long handlers that are under way may take when listening ends.
GRACE = 20.0


class Scheduler(Commands):
    """`async with Scheduler(url) as duebell: await duebell.schedule(…)`

    prefix   the AMQP_PREFIX of the Duebell that is meant, if it has one
    owner    say who asks (AMQP's user_id, which the broker checks): no other user may then change the job
    app_id   the application's name for the history of a job; missing: the name of the program that runs
    timeout  seconds for each command, connecting and sending again included; a call may set its own
    """

    _listenings: tuple[Listening, ...] = ()

    def on(self, topic: str, *, queue: str, **options: Unpack[ListeningOptions]) -> Callable[[Handler], Handler]:
        """Register an `async def handler(due)`, as a decorator above it. While `run` runs, the handler is called for
        every event of the topic (`invoices.#` for all below it). The queue is declared under the name you give it, and
        keeps the events that come while no listener runs.
        """

        def register(handler: Handler) -> Handler:
            self._listenings += (Listening(topic, queue, handler, **options),)
            return handler

        return register

    async def run(self) -> None:
        """Listen with all handlers that `on` has registered, until the task is cancelled."""
        async with AsyncExitStack() as stack:
            for listening in self._listenings:
                await stack.enter_async_context(self._listening(listening))
            await asyncio.Event().wait()

    @asynccontextmanager
    async def listening(
        self, topic: str, handler: Handler, *, queue: str, **options: Unpack[ListeningOptions]
    ) -> AsyncIterator[None]:
        """Listen with one handler until the block ends. Then no more events are taken, and handlers that are under way
        may finish.
        """
        async with self._listening(Listening(topic, queue, handler, **options)):
            yield

    @asynccontextmanager
    async def _listening(self, listening: Listening) -> AsyncIterator[None]:
        # A connection of its own: a broker that is short of memory blocks those that publish.
        async with Link(self._url, f"duebell listener {listening.queue}", self._timeout) as link:
            listener = Listener(link, self._prefix + EVENTS_EXCHANGE, listening, GRACE)
            task = asyncio.create_task(listener.run(), name=f"listening on {listening.queue}")
            try:
                await self._started(listener, task)
                yield
            finally:
                listener.stop.set()
                await asyncio.wait({task}, timeout=2 * GRACE)
                task.cancel()
                await asyncio.wait({task})

    async def _started(self, listener: Listener, task: "asyncio.Task[None]") -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await first_of(listener.ready.wait(), asyncio.wait({task}))
        except TimeoutError:
            raise Unreachable(f"not listening within {self._timeout:g} s") from None
        if task.done():
            task.result()  # raises what kept it from starting
