"""Claims rows that are due, no more than there are free places, and takes a place for each: the oldest first; if those
are of hosts without room, then host by host, so that whoever has room is found behind them.
"""

import time
from dataclasses import dataclass
from datetime import datetime

from delivery.admission import Admission
from delivery.hosts import Hosts
from delivery.model import Delivery
from delivery.store import Room, claim_oldest, claim_round, hosts_left_behind, seconds_until_next
from shared.database import Connection, Pool

ACQUIRE_TIMEOUT = 10.0
# How many of the oldest a claim looks at before it goes host by host.
LOOK_AT = 1000


@dataclass(slots=True)
class Claimer:
    pool: Pool
    hosts: Hosts
    admission: Admission
    lease_margin: float
    left_behind: bool = True  # the last look saw rows that are due and had no room, or did not see all
    _after_host: str = ""  # where the last round ended

    async def claim_once(self, now: datetime | None = None) -> list[Delivery]:
        """At most as many as there are free places, each with its place taken."""
        self.hosts.forget_idle(time.monotonic())
        self.admission.begin_look()
        self.left_behind = True
        if not self.hosts.free:
            return []
        claimed: list[Delivery] = []
        try:
            async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection, connection.transaction():
                found, looked_at = await claim_oldest(connection, self._room(), self.lease_margin, LOOK_AT, now)
                self._take(found, claimed)
                if looked_at == LOOK_AT and self.hosts.free:
                    await self._claim_round(connection, claimed, now)
                self.left_behind = looked_at == LOOK_AT or looked_at > len(claimed)
                # Of hosts beyond the oldest, those are looked at that may have some: left before, or served just now.
                known = self.admission.behind.union(delivery.host for delivery in claimed)
                behind = await hosts_left_behind(connection, LOOK_AT, known, now) if self.left_behind else []
        except BaseException:
            # Rolled back, or nobody knows: either way nobody will be called for them, and their places are free.
            for delivery in claimed:
                self.hosts.let_go(delivery.host)
            raise
        self.admission.end_look(behind)
        return claimed

    async def seconds_until_next(self) -> float | None:
        async with self.pool.acquire(timeout=ACQUIRE_TIMEOUT) as connection:
            return await seconds_until_next(connection)

    async def _claim_round(self, connection: Connection, claimed: list[Delivery], now: datetime | None) -> None:
        """Beginning where the last one stopped."""
        for after_host in {self._after_host: None, "": None}:
            room = self._room()
            if not room.total:
                return
            found = await claim_round(connection, room, self.lease_margin, after_host, now)
            self._take(found, claimed)
            if len(found) == room.total:  # it ended before the last host
                self._after_host = max(delivery.host for delivery in found)
                return
        self._after_host = ""

    def _room(self) -> Room:
        return Room(self.hosts.free, self.hosts.max_per_host, self.hosts.exceptions(time.monotonic()))

    def _take(self, found: list[Delivery], claimed: list[Delivery]) -> None:
        for delivery in found:
            self.hosts.take(delivery.host)
            claimed.append(delivery)
