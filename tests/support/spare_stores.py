"""Stores for the tests that stop, kill, freeze or alarm them.

Such a test can leave a server behind that looks well and is not. RabbitMQ 3.10, for one: if a queue with at-least-once
dead-lettering is deleted within seconds of a restart, the process that serves its dead letters dies until its
supervisor gives up, and from then on every declaration of such a queue fails. So these tests share no servers with the
others, their queues are never deleted, and the servers are replaced as soon as a look at them finds something wrong.
"""

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass, field

import asyncpg
from aio_pika.exceptions import AMQPError

from tests.support.stores import Stores, make_template_now, new_site, running_stores, store_directory

LOOK_SECONDS = 60.0


@dataclass(slots=True)
class SpareStores:
    _running: ExitStack = field(default_factory=ExitStack)
    _stores: Stores | None = None

    def get(self) -> Stores:
        """Return the pair that runs, or start one."""
        if self._stores is None:
            directory = self._running.enter_context(store_directory("spare"))
            self._stores = self._running.enter_context(running_stores(directory))
            make_template_now(self._stores)
        return self._stores

    def look_over(self) -> None:
        """After a test: give the pair up if it is not well, so that the next test gets a new one."""
        if self._stores is not None and not asyncio.run(_are_well(self._stores)):
            self.close()

    def close(self) -> None:
        self._running.close()
        self._stores = None


async def _are_well(stores: Stores) -> bool:
    """Whether both run, and every kind of queue that a test needs can be declared."""
    try:
        async with asyncio.timeout(LOOK_SECONDS), new_site(stores, delete_queues=False):
            return True
    except (OSError, AMQPError, asyncpg.PostgresError, TimeoutError):
        return False
