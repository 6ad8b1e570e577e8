"""Ceilings and peers run as processes of their own, like the services they stand beside: `python -m module`, with what
it needs as JSON in its arguments, and what it found out as JSON on its last line.
"""

import asyncio
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

LONGEST_RUN = 300.0


class ChildFailed(Exception):
    """It did not come to its end."""


@dataclass(frozen=True, slots=True)
class Result:
    per_second: float
    cpu_ms_per_1000: float
    resident_mb: float


async def run(module: str, *, program: str = sys.executable, **arguments: str | int) -> Result:
    return await run_command([program, "-m", module], arguments)


async def run_command(
    command: Sequence[str], arguments: Mapping[str, str | int], environment: Mapping[str, str] | None = None
) -> Result:
    process = await asyncio.create_subprocess_exec(
        *command,
        json.dumps(arguments),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), LONGEST_RUN)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ChildFailed(f"{' '.join(command)} ended with {process.returncode}:\n{err.decode()[-2000:]}")
    return Result(**json.loads(out.splitlines()[-1]))


def report(items: int, seconds: float, cpu_seconds: float) -> None:
    """The last line of a child."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps(asdict(Result(items / seconds, cpu_seconds / items * 1e6, peak))) + "\n")


def arguments() -> dict[str, Any]:
    given: dict[str, Any] = json.loads(sys.argv[1])
    return given


async def timed(items: int, work: Callable[[], Awaitable[object]]) -> None:
    """Runs the work and reports on it."""
    cpu, began = time.process_time(), time.perf_counter()
    await work()
    report(items, time.perf_counter() - began, time.process_time() - cpu)
