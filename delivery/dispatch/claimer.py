"""Claims rows that are due, no more than the local queue has room for: the oldest first. If the oldest belong to hosts
without room, it goes host by host, so that rows of hosts with room are found behind them.
"""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from delivery.dispatch.local_queue import LocalQueue, Reservation
from delivery.model import Delivery
from delivery.store.claims import claim_oldest, claim_round, seconds_until_next
from shared.postgres.pool import ACQUIRE_TIMEOUT, Connection, Pool

# How many of the oldest rows a claim looks at before it goes host by host.
LOOK_AT_ROWS = 1000


class Claim(NamedTuple):
    rows: list[Delivery]
    left_rows: bool  # the table may have more rows that are due: of hosts without room, or beyond those looked at


@dataclass(slots=True)
class Claimer:
    pool: Pool
    queue: LocalQueue
    lease_margin: float
    _after_host: str = ""  # where the last round over hosts ended

    async def claim_once(self, now: datetime | None = None) -> Claim:
        """After the commit: the rows are leased to this process, and wait in the local queue."""
        if not self.queue.free:
            return Claim([], left_rows=True)
        with self.queue.reservation(time.monotonic()) as reservation:
            async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
                room = self.queue.room(time.monotonic())
                found, looked_at = await claim_oldest(connection, room, self.lease_margin, LOOK_AT_ROWS, now)
                reservation.add(found)
                # Rows that will wait for a quick host count towards the total as well. They take no room from other
                # hosts, so the round has a total of its own.
                if looked_at == LOOK_AT_ROWS or len(found) == room.total < looked_at:
                    await self._claim_round(connection, reservation, now)
            reservation.commit(time.monotonic())
        rows = reservation.rows
        return Claim(rows, left_rows=looked_at == LOOK_AT_ROWS or looked_at > len(rows))

    async def seconds_until_next(self) -> float | None:
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
            if len(found) == room.total:  # it ended before the last host
                self._after_host = max(delivery.host for delivery in found)
                return
        self._after_host = ""
