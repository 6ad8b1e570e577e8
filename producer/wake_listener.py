"""Listens for the notifications of consumers, which say that a job was stored that is due soon, and wakes the lanes.
While the connection is lost, and behind a pooler, the polling of the lanes finds such jobs.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from shared.postgres.database import CONNECT_TIMEOUT, Database
from shared.postgres.errors import RETRYABLE_ERRORS
from shared.postgres.wake_producers import CHANNEL, PRODUCER_POLL_SECONDS
from shared.runtime.backoff import Backoff
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, first_of, mark_turn, waiting_outside
from shared.runtime.wakeup import Wakeup

# A connection may be lost without any sign. A query that fails shows it.
PROBE_SECONDS = 15.0


@dataclass(slots=True)
class WakeListener:
    """Sets all wakeups at each notification. `direct_url` is an address without a pooler, if there is one."""

    database_url: str
    direct_url: str | None
    wakeups: Sequence[Wakeup]
    # Behind a pooler in transaction mode a session that listens is lost without any sign.
    polls_only: bool = False

    async def listen_until_stopped(self, stop: Stop) -> None:
        """Listen until the stop; connect again when the connection is lost."""
        backoff = Backoff()
        while not stop.requested:
            mark_turn()
            try:
                await self._listen(stop, backoff)
            except RETRYABLE_ERRORS:
                await stop.sleep(backoff.next_pause())

    async def _listen(self, stop: Stop, backoff: Backoff) -> None:
        database = Database(self.direct_url or self.database_url, "duebell-producer-listen")
        connection = await database.connect(command_timeout=CONNECT_TIMEOUT)
        try:
            if database.is_pooled and self.direct_url is None:
                await self._only_poll(stop)
                return
            lost = asyncio.Event()
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(CHANNEL, self._wake_all)
            backoff.reset()
            self._wake_all()  # notifications that were sent while this process did not listen are gone
            while not stop.requested and not lost.is_set():
                mark_turn()
                await first_of(lost.wait(), stop.sleep(PROBE_SECONDS))
                await connection.execute("select 1")
        finally:
            connection.terminate()

    async def _only_poll(self, stop: Stop) -> None:
        self.polls_only = True
        get_log().warning("polling_only", poll_seconds=PRODUCER_POLL_SECONDS)
        with waiting_outside():
            await stop.wait()

    def _wake_all(self, *_: object) -> None:
        for wakeup in self.wakeups:
            wakeup.set()
