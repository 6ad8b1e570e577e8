"""Hears when a consumer stores something that is due soon, and rings the lanes' bells. If the connection is lost, the
lanes' polling covers for it until it is back.
"""

import asyncio
from collections.abc import Sequence

import asyncpg

from shared.backoff import Backoff
from shared.bell import Bell
from shared.database import CONNECT_TIMEOUT, PASSING_TROUBLE
from shared.due_soon import CHANNEL
from shared.lifecycle import Stop, first_of
from shared.pulse import beat

# A connection that died without a word is found out by asking.
PROBE_SECONDS = 15.0


async def listen_until_stopped(database_url: str, bells: Sequence[Bell], stop: Stop) -> None:
    backoff = Backoff()
    while not stop.requested:
        beat()
        try:
            await _listen(database_url, bells, stop, backoff)
        except PASSING_TROUBLE:
            await stop.sleep(backoff.next_pause())


async def _listen(database_url: str, bells: Sequence[Bell], stop: Stop, backoff: Backoff) -> None:
    def ring_all(*_: object) -> None:
        for bell in bells:
            bell.ring()

    connection = await asyncpg.connect(
        database_url,
        timeout=CONNECT_TIMEOUT,
        command_timeout=CONNECT_TIMEOUT,
        server_settings={"application_name": "duebell-producer-listen"},
    )
    try:
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        await connection.add_listener(CHANNEL, ring_all)
        backoff.reset()
        ring_all()  # for what was said while this process did not listen
        while not stop.requested and not lost.is_set():
            beat()
            await first_of(lost.wait(), stop.sleep(PROBE_SECONDS))
            await connection.execute("select 1")
    finally:
        connection.terminate()
