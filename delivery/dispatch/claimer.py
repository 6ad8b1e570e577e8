"""Claims rows that are due into the local queue, as many as it has room for. The oldest rows come first. If the oldest
belong to hosts without room, the claim goes on host by host, to find rows of hosts with room behind them.
"""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from delivery.dispatch.local_queue import LocalQueue, Reservation
from delivery.model import Delivery
from delivery.store.claims import claim_oldest, claim_round, seconds_until_next
from shared.postgres.pool import ACQUIRE_TIMEOUT, Connection, Pool

# How many of the oldest rows a claim reads before it goes on host by host.
MAX_ROWS_READ = 1000


class Claim(NamedTuple):
    """The rows that one claim has leased."""

    rows: list[Delivery]
    left_rows: bool  # the table may have more rows that are due: of hosts without room, or beyond the rows it read


@dataclass(slots=True)
class Claimer:
    """Claims rows of `deliveries` for one process."""

    pool: Pool
    queue: LocalQueue
    lease_margin: float
    _after_host: str = ""  # the host at which the last round ended

    async def claim_once(self, now: datetime | None = None) -> Claim:
        """Claim once. After the commit: the rows are leased to this process, and wait in the local queue."""
        if not self.queue.free:
            return Claim([], left_rows=True)
        with self.queue.reservation(time.monotonic()) as reservation:
            async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
                room = self.queue.room(time.monotonic())
                found, rows_read = await claim_oldest(connection, room, self.lease_margin, MAX_ROWS_READ, now)
                reservation.add(found)
                # `found` may hold rows that will wait for a fast host. They count towards the total of this statement,
                # but take no room from other hosts, so the round asks for the room again.
                if rows_read == MAX_ROWS_READ or len(found) == room.total < rows_read:
                    await self._claim_round(connection, reservation, now)
            reservation.commit(time.monotonic())
        rows = reservation.rows
        return Claim(rows, left_rows=rows_read == MAX_ROWS_READ or rows_read > len(rows))

    async def seconds_until_next(self) -> float | None:
        """Return the seconds until the next row is due. None: no row is due later."""
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            return await seconds_until_next(connection)

    async def _claim_round(self, connection: Connection, reservation: Reservation, now: datetime | None) -> None:
        """Claim host by host in the order of names, beginning where the last round ended."""
        for after_host in {self._after_host: None, "": None}:
            room = self.queue.room(time.monotonic())
            if not room.total:
                return
            found = await claim_round(connection, room, self.lease_margin, after_host, now)
            reservation.add(found)
            if len(found) == room.total:  # the round ended before the last host
                self._after_host = max(delivery.host for delivery in found)
                return
        self._after_host = ""
