"""The table of running processes: each writes every few seconds that it is there. So an operator sees which services
run, and since when one has been silent. A process that is killed or frozen writes nothing more.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import orjson

from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.postgres.pool import ACQUIRE_TIMEOUT, Connection, Pool
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, mark_turn
from shared.version import VERSION

SEEN_EVERY_SECONDS = 5.0
# A stop waits no longer than this for the table.
STOP_SECONDS = 2.0

SEEN = """
insert into service_instances (instance, service, host, version, details) values ($1, $2, $3, $4, $5::text::json)
on conflict (instance) do update set seen_at = now(), stopped_at = null, details = excluded.details
"""


async def write_seen(connection: Connection, instance: str, service: str, host: str, details: str | None) -> None:
    """After the commit: the process was seen now, with these details (JSON text)."""
    await connection.execute(SEEN, instance, service, host, VERSION, details)


STOPPED = "update service_instances set stopped_at = now(), seen_at = now() where instance = $1"


async def write_stopped(connection: Connection, instance: str) -> None:
    """After the commit: the process has stopped in order."""
    await connection.execute(STOPPED, instance)


# A producer calls it: its role alone may delete these rows.
FORGET = "delete from service_instances where seen_at < now() - interval '7 days'"


async def forget_instances(connection: Connection) -> None:
    """After the commit: processes that were not seen for a week have no row."""
    await connection.execute(FORGET)


@dataclass(frozen=True, slots=True)
class Instance:
    """This process, as other parts of an installation see it."""

    pool: Pool
    service: str
    # What operators may want to know about the process now. It is written with each sign of life.
    describe: Callable[[], Mapping[str, object]] = dict
    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:6]}")

    async def report_until_stopped(self, stop: Stop) -> None:
        """Write every few seconds that the process runs, and at the stop that it has stopped."""
        while not stop.requested:
            mark_turn()
            try:
                async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
                    await write_seen(connection, self.name, self.service, socket.gethostname(), self._details())
            except RETRYABLE_ERRORS as error:
                get_log().warning("instance_not_written", error=describe(error))
            await stop.sleep(SEEN_EVERY_SECONDS)
        await self._write_stopped()

    def _details(self) -> str | None:
        details = self.describe()
        return orjson.dumps(details).decode() if details else None

    async def _write_stopped(self) -> None:
        try:
            async with asyncio.timeout(STOP_SECONDS), self.pool.acquire() as connection:
                await write_stopped(connection, self.name)
        except RETRYABLE_ERRORS as error:
            get_log().warning("instance_not_written", error=describe(error))
