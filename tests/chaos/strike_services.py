"""Strikes at services: signals at any moment or at a named point of the code, and a wrong clock."""

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from shared.postgres.errors import RETRYABLE_ERRORS
from shared.runtime.fault_points import Point
from tests.chaos.faults import Fault
from tests.chaos.replicas import Replica, Trap
from tests.chaos.script import Strike
from tests.chaos.system import System

AT_WORK_SECONDS = 20.0
# A point is reached as soon as there is work of its kind, but a store may be away or the machine busy.
REACH_SECONDS = 90.0
TAKE_OVER_SECONDS = 30.0
NOTICE_SECONDS = 15.0
LOOK_SECONDS = 0.05

LEASES_OVER = "select count(*) from deliveries where status = 'PROCESSING' and next_attempt_at < now()"


class Missed(Exception):
    """The strike did not happen as the script says."""


async def strike_service(system: System, strike: Strike) -> str:
    """Make the fault happen to one replica. Returns a note for the ledger."""
    if strike.fault is Fault.KILL_AT_POINT:
        return await _kill_at_point(system, strike)
    replica = _target(system, strike)
    with _striking(replica):
        match strike.fault:
            case Fault.KILL:
                await replica.kill()
            case Fault.TERM:
                return f"exit code {await replica.stop(signal.SIGTERM)}"
            case Fault.FREEZE:
                replica.send(signal.SIGSTOP)
                await asyncio.sleep(strike.seconds)
                replica.send(signal.SIGCONT)
            case Fault.CLOCK_AHEAD | Fault.CLOCK_BEHIND:
                await _shift_clock(replica, strike)
            case _:
                return await _freeze_past_lease(system, replica, strike)
    return ""


async def wait_until_at_work(system: System, strike: Strike) -> None:
    """Wait until the target works, so that the strike hits something. After AT_WORK_SECONDS it is struck anyway."""
    target = _target(system, strike)
    for replica in system.replicas[strike.track]:
        if replica is target or not strike.reckless:
            await _wait(replica.is_ready_or_dead, AT_WORK_SECONDS)
    await asyncio.sleep(strike.pause)


def _target(system: System, strike: Strike) -> Replica:
    return system.replicas[strike.track][strike.replica - 1]


async def _kill_at_point(system: System, strike: Strike) -> str:
    """Kill a replica at a named point. It runs alone, so that no other replica takes the work of that point."""
    point = Point(strike.target)
    armed, *others = system.replicas[strike.track]
    with _striking(armed, *others):
        for replica in (armed, *others):
            await replica.kill()
        armed.start(Trap(point, strike.nth))
        await _wait(lambda: not armed.is_alive(), REACH_SECONDS)
        reached = armed.has_reached_its_trap()
        exit_code = await armed.kill()
    if not reached:
        raise Missed(f"not reached {strike.nth} times within {REACH_SECONDS:.0f} s; exit code {exit_code}")
    return f"the {strike.nth}. time"


async def _shift_clock(replica: Replica, strike: Strike) -> None:
    await replica.kill()
    replica.start(clock="+1h" if strike.fault is Fault.CLOCK_AHEAD else "-1h")
    if not await _wait(replica.is_ready_or_dead, REACH_SECONDS) or not replica.is_alive():
        raise Missed("never ready with that clock")
    await asyncio.sleep(strike.seconds)
    await replica.kill()


async def _freeze_past_lease(system: System, replica: Replica, strike: Strike) -> str:
    """Freeze a replica after a call and before its result is recorded, until its lease ends and the other replica
    calls.
    """
    [other] = [one for one in system.replicas[strike.track] if one is not replica]
    before = replica.said("lease_lost")
    await replica.kill()
    replica.start(Trap(Point.DELIVERY_CALLED, strike.nth, signal.SIGSTOP))
    if not await _wait(replica.is_frozen, REACH_SECONDS):
        await replica.kill()
        raise Missed("it never called a webhook")
    await _wait(other.is_ready_or_dead, AT_WORK_SECONDS)
    await asyncio.sleep(strike.seconds)
    await _wait_until_taken_over(system)
    replica.send(signal.SIGCONT)
    fenced = await _wait(lambda: replica.said("lease_lost") > before, NOTICE_SECONDS)
    return "its result was dropped" if fenced else "no replica had taken over"


async def _wait_until_taken_over(system: System) -> None:
    """Wait until no lease is over. Only a frozen replica lets one run out: the other replica records its results
    before.
    """
    deadline = time.monotonic() + TAKE_OVER_SECONDS
    while time.monotonic() < deadline:
        with suppress(*RETRYABLE_ERRORS):  # a store may be away
            async with system.database() as database:
                if not await database.fetchval(LEASES_OVER):
                    return
        await asyncio.sleep(LOOK_SECONDS)


@contextmanager
def _striking(*replicas: Replica) -> Iterator[None]:
    """Tell the watch that the replicas are struck on purpose. In the end all of them run again."""
    for replica in replicas:
        replica.is_struck = True
    try:
        yield
    finally:
        for replica in replicas:
            if not replica.is_alive():
                replica.start()
            replica.is_struck = False


async def _wait(true: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not await asyncio.to_thread(true):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(LOOK_SECONDS)
    return True
