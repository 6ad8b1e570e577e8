"""Ceilings and peers run as processes of their own, like the services they stand beside: `python -m module`, with what
it needs as JSON in its arguments, and what it found out as JSON on its last line.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MAX_RUN_SECONDS = 300.0


class ChildFailed(Exception):
    """A child process did not come to its end."""


@dataclass(frozen=True, slots=True)
class Result:
    per_second: float
    cpu_ms_per_1000: float
    resident_mb: float


async def run(module: str, **arguments: str | int) -> Result:
    return Result(**await ask(module, **arguments))


async def ask(module: str, **arguments: str | float) -> dict[str, Any]:
    """Run a child whose answer is not a rate, and return the answer."""
    return await run_command([sys.executable, "-m", module], arguments)


async def run_command(
    command: Sequence[str], arguments: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run a command. Return its last line; an empty text if it has none."""
    process = await asyncio.create_subprocess_exec(
        *command,
        json.dumps(arguments),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), MAX_RUN_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ChildFailed(f"{' '.join(command)} ended with {process.returncode}:\n{err.decode()[-2000:]}")
    found: dict[str, Any] = json.loads(out.splitlines()[-1]) if out.strip() else {}
    return found


def report(items: int, seconds: float, cpu_seconds: float) -> None:
    """Print the last line of a child."""
    # Not getrusage's: that begins with what the parent had when it forked.
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024
    answer(asdict(Result(items / seconds, cpu_seconds / items * 1e6, peak)))


def answer(found: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    sys.stdout.write(json.dumps(found) + "\n")


def arguments() -> dict[str, Any]:
    given: dict[str, Any] = json.loads(sys.argv[1])
    return given


async def timed(items: int, work: Callable[[], Awaitable[object]]) -> None:
    """Run the work and report how long it took."""
    cpu, began = time.process_time(), time.perf_counter()
    await work()
    report(items, time.perf_counter() - began, time.process_time() - cpu)
