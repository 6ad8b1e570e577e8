"""How services are struck: by signals at any moment, at a named point of their own code, by a clock that is wrong."""

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from shared.postgres.errors import RETRYABLE_ERRORS
from shared.runtime.fault_points import Point
from tests.chaos.faults import Fault
from tests.chaos.replicas import Replica, Trap
from tests.chaos.scene import Scene
from tests.chaos.script import Strike

AT_WORK_SECONDS = 20.0
# A point is reached as soon as there is work of its kind, but a store may be away or the machine busy.
REACH_SECONDS = 90.0
TAKE_OVER_SECONDS = 30.0
NOTICE_SECONDS = 15.0
LOOK_SECONDS = 0.05

LEASES_OVER = "select count(*) from deliveries where status = 'PROCESSING' and next_attempt_at < now()"


class Missed(Exception):
    """The strike did not happen as the script says."""


async def strike_service(scene: Scene, strike: Strike) -> str:
    """Returns what is worth noting."""
    if strike.fault is Fault.KILL_AT_POINT:
        return await _kill_at_point(scene, strike)
    replica = _target(scene, strike)
    with _in_hand(replica):
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
                return await _outsleep_lease(scene, replica, strike)
    return ""


async def wait_until_at_work(scene: Scene, strike: Strike) -> None:
    """So that the strike hits something. A store that is away may keep it from its work: then as it is."""
    target = _target(scene, strike)
    for replica in scene.replicas[strike.track]:
        if replica is target or not strike.reckless:
            await _wait(replica.is_ready_or_dead, AT_WORK_SECONDS)
    await asyncio.sleep(strike.pause)


def _target(scene: Scene, strike: Strike) -> Replica:
    return scene.replicas[strike.track][strike.replica - 1]


async def _kill_at_point(scene: Scene, strike: Strike) -> str:
    """Alone, so that nobody else takes the work that brings it there."""
    point = Point(strike.target)
    armed, *others = scene.replicas[strike.track]
    with _in_hand(armed, *others):
        for replica in (armed, *others):
            await replica.kill()
        armed.start(Trap(point, strike.nth))
        await _wait(lambda: not armed.is_alive(), REACH_SECONDS)
        sprung = armed.has_sprung()
        exit_code = await armed.kill()
    if not sprung:
        raise Missed(f"not reached {strike.nth} times within {REACH_SECONDS:.0f} s; exit code {exit_code}")
    return f"the {strike.nth}. time"


async def _shift_clock(replica: Replica, strike: Strike) -> None:
    await replica.kill()
    replica.start(clock="+1h" if strike.fault is Fault.CLOCK_AHEAD else "-1h")
    if not await _wait(replica.is_ready_or_dead, REACH_SECONDS) or not replica.is_alive():
        raise Missed("never ready with that clock")
    await asyncio.sleep(strike.seconds)
    await replica.kill()


async def _outsleep_lease(scene: Scene, replica: Replica, strike: Strike) -> str:
    """Freezes itself after a call, before its record; meanwhile the lease ends and the other replica calls."""
    [other] = [one for one in scene.replicas[strike.track] if one is not replica]
    before = replica.said("lease_lost")
    await replica.kill()
    replica.start(Trap(Point.DELIVERY_CALLED, strike.nth, signal.SIGSTOP))
    if not await _wait(replica.is_frozen, REACH_SECONDS):
        await replica.kill()
        raise Missed("it never called anybody")
    await _wait(other.is_ready_or_dead, AT_WORK_SECONDS)
    await asyncio.sleep(strike.seconds)
    await _wait_until_taken_over(scene)
    replica.send(signal.SIGCONT)
    fenced = await _wait(lambda: replica.said("lease_lost") > before, NOTICE_SECONDS)
    return "its result was dropped" if fenced else "nobody had taken over"


async def _wait_until_taken_over(scene: Scene) -> None:
    """What has a lease that is over is the sleeper's: the others' are renewed, or ended, long before."""
    deadline = time.monotonic() + TAKE_OVER_SECONDS
    while time.monotonic() < deadline:
        with suppress(*RETRYABLE_ERRORS):  # a store may be away
            async with scene.database() as database:
                if not await database.fetchval(LEASES_OVER):
                    return
        await asyncio.sleep(LOOK_SECONDS)


@contextmanager
def _in_hand(*replicas: Replica) -> Iterator[None]:
    """Nobody wonders what becomes of them meanwhile; in the end they are running."""
    for replica in replicas:
        replica.in_hand = True
    try:
        yield
    finally:
        for replica in replicas:
            if not replica.is_alive():
                replica.start()
            replica.in_hand = False


async def _wait(true: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not await asyncio.to_thread(true):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(LOOK_SECONDS)
    return True
