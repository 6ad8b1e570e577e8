"""What APScheduler's jobs run: they are stored by this name, so what they need has to be found from here."""

import asyncio
from dataclasses import dataclass, field

from bench.peers.drivers.publishing import Publish


@dataclass(slots=True)
class Rings:
    publish: Publish
    remaining: int
    finished: asyncio.Event = field(default_factory=asyncio.Event)


rings: list[Rings] = []


async def ring() -> None:
    await rings[0].publish()
    rings[0].remaining -= 1
    if rings[0].remaining == 0:
        rings[0].finished.set()
