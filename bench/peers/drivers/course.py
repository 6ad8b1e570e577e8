"""What every peer written in Python is put through, in a process of its own: one-shots, heard at their moments; then
due jobs, as fast as it can, with each kind of handler that is asked for. `course.mjs` is the same for those in Node.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import asyncpg
import uvloop

from bench.child import arguments
from bench.peers.drivers.handling import Act, Handle, Handling, nothing
from bench.peers.drivers.publishing import a_publisher

LEAD_SECONDS = 1.5
WARM_UP, WARM_UP_SECONDS = 5000, 3.0
A_DAY = 86400.0


class Peer(Protocol):
    async def install(self) -> None:
        """Create the peer's tables."""

    async def add(self, first: int, due_at: Sequence[float]) -> None:
        """Add jobs by the peer's own API, numbered from `first` on, each due at its moment."""

    def working(self, handle: Handle) -> AbstractAsyncContextManager[object]:
        """Run a worker for the length of the block."""


def run(peer: Peer) -> None:
    given = arguments()
    uvloop.run(_install(peer) if given["step"] == "install" else _measure(peer, given))


async def _install(peer: Peer) -> None:
    """Install the peer with one job for tomorrow, from which others can be made in its likeness."""
    await peer.install()
    await peer.add(-1, [time.time() + A_DAY])


async def _measure(peer: Peer, given: dict[str, Any]) -> None:
    late = await _lateness(peer, given["rings"], given["rings_seconds"], given["patience"])
    rates: list[dict[str, float]] = []
    async with a_publisher(given["amqp_url"], given["queue"]) as publish:
        acts = [publish if publishes else nothing for publishes in given["publishes"]]
        await _rate(peer, given, range(1_000_000, 1_000_000 + WARM_UP), acts[0], WARM_UP_SECONDS)
        for act in acts:
            first = 2_000_000 + len(rates) * 1_000_000
            rates.append(await _rate(peer, given, range(first, first + given["jobs"]), act, given["patience"]))
    sys.stdout.write(json.dumps({"rates": rates, **late, "resident_mb": _peak_mb()}) + "\n")


async def _lateness(peer: Peer, count: int, seconds: float, patience: float) -> dict[str, Any]:
    """Return the milliseconds of each job. A job that was not heard in time counts as late as it was by then: too
    little.
    """
    handling = Handling(range(count), nothing)
    async with peer.working(handling.handle):
        begin = time.time() + LEAD_SECONDS
        due_at = [begin + number * seconds / count for number in range(count)]
        await peer.add(0, due_at)
        await handling.until_finished(LEAD_SECONDS + seconds + patience / 2)
    now = time.time()
    late = [(handling.heard_at.get(number, now) - due) * 1000 for number, due in enumerate(due_at)]
    return {"late_ms": late, "heard": len(handling.heard_at)}


async def _rate(peer: Peer, given: dict[str, Any], numbers: range, act: Act, patience: float) -> dict[str, float]:
    await peer.add(numbers.start, [time.time() - 1] * len(numbers))
    await _settle_down(given["database_url"])
    handling = Handling(numbers, act)
    cpu, began = time.process_time(), time.time()
    async with peer.working(handling.handle):
        await handling.until_finished(patience)
        ended, handled, cpu = time.time(), handling.handled, time.process_time() - cpu
    return {"per_second": handled / (ended - began), "cpu_ms_per_1000": cpu / max(handled, 1) * 1e6, "handled": handled}


async def _settle_down(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute("vacuum (analyze)")
    await connection.execute("checkpoint")
    await connection.close()


def _peak_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024


async def ended(worker: "asyncio.Task[Any]") -> None:
    """End a task, in the middle of its work if need be: its result is of no interest any more."""
    worker.cancel()
    await asyncio.wait([worker], timeout=5)
