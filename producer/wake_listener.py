"""Listens for the notifications of consumers, which say that a job was stored that is due soon, and wakes the lanes.
While the connection is lost, the polling of the lanes finds such jobs.
"""

import asyncio
from collections.abc import Sequence

import asyncpg

from shared.postgres.errors import RETRYABLE_ERRORS
from shared.postgres.pool import CONNECT_TIMEOUT
from shared.postgres.wake_producers import CHANNEL
from shared.runtime.backoff import Backoff
from shared.runtime.loops import Stop, first_of, mark_turn
from shared.runtime.wakeup import Wakeup

# A connection may be lost without any sign. A query that fails shows it.
PROBE_SECONDS = 15.0


async def listen_until_stopped(database_url: str, wakeups: Sequence[Wakeup], stop: Stop) -> None:
    """Set all wakeups at each notification, until the stop; connect again when the connection is lost."""
    backoff = Backoff()
    while not stop.requested:
        mark_turn()
        try:
            await _listen(database_url, wakeups, stop, backoff)
        except RETRYABLE_ERRORS:
            await stop.sleep(backoff.next_pause())


async def _listen(database_url: str, wakeups: Sequence[Wakeup], stop: Stop, backoff: Backoff) -> None:
    def wake_all(*_: object) -> None:
        for wakeup in wakeups:
            wakeup.set()

    connection = await asyncpg.connect(
        database_url,
        timeout=CONNECT_TIMEOUT,
        command_timeout=CONNECT_TIMEOUT,
        server_settings={"application_name": "duebell-producer-listen"},
    )
    try:
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        await connection.add_listener(CHANNEL, wake_all)
        backoff.reset()
        wake_all()  # notifications that were sent while this process did not listen are gone
        while not stop.requested and not lost.is_set():
            mark_turn()
            await first_of(lost.wait(), stop.sleep(PROBE_SECONDS))
            await connection.execute("select 1")
    finally:
        connection.terminate()
