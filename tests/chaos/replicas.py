"""The services as processes, two of each, started as they are or with a fault. `watch()` records a process that ends
without a strike, and starts it again.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shared.runtime.fault_points import Point
from stack.directory import LOGS, RECORDS
from stack.ports import LOOPBACK, free_port
from stack.processes import Child, spawn
from stack.services import PROJECT, answers
from tests.chaos import service_with_fault
from tests.chaos.ledger import Ended, Ledger, now

STOP_SECONDS = 20.0
WATCH_SECONDS = 0.1
# The last line of a log may be a whole traceback; its end names the error.
MAX_LOG_LINE_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Trap:
    """The named point at which a process sends itself a signal, the n-th time that it gets there."""

    point: Point
    nth: int = 1
    deals: signal.Signals = signal.SIGKILL


@dataclass(slots=True)
class Replica:
    service: str
    name: str
    environment: Mapping[str, str]
    directory: Path
    is_struck: bool = False  # its end is no surprise while a strike is made at it
    port: int = field(default_factory=free_port)
    _child: Child | None = None

    @property
    def log(self) -> Path:
        return self.directory / LOGS / f"{self.name}.log"

    @property
    def reached_file(self) -> Path:
        return self.directory / f"{self.name}.reached"

    def start(self, trap: Trap | None = None, clock: str | None = None) -> None:
        command = [sys.executable, "-m", self.service]
        environment = {"METRICS_HOST": LOOPBACK, "METRICS_PORT": str(self.port), **self.environment}
        if trap is not None:
            self.reached_file.unlink(missing_ok=True)
            command = [sys.executable, "-m", "tests.chaos.service_with_fault", self.service]
            environment |= {
                service_with_fault.POINT: trap.point,
                service_with_fault.NTH: str(trap.nth),
                service_with_fault.SIGNAL: str(int(trap.deals)),
                service_with_fault.REACHED_FILE: str(self.reached_file),
            }
        if clock is not None:
            command = ["faketime", "-f", clock, *command]
        inherited = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._child = spawn(
            self.name,
            command,
            records=self.directory / RECORDS,
            log=self.log,
            env={**inherited, **environment},
            cwd=PROJECT,
        )

    def is_alive(self) -> bool:
        return self._child is not None and self._child.alive()

    def has_reached_its_trap(self) -> bool:
        """Tell whether the process has reached the point of its trap."""
        return self.reached_file.exists()

    def is_frozen(self) -> bool:
        try:
            return Path(f"/proc/{self._running().pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        except FileNotFoundError:
            return False

    def send(self, number: signal.Signals) -> None:
        self._running().send(number)

    async def stop(self, number: signal.Signals) -> int | None:
        """Stop the process. Returns its exit code, None if it was not running."""
        if self._child is None:
            return None
        child, self._child = self._child, None
        return await asyncio.to_thread(child.stop, number, STOP_SECONDS)

    async def kill(self) -> int | None:
        return await self.stop(signal.SIGKILL)

    def is_ready(self) -> bool:
        return answers(self.port, "/readyz")

    def is_ready_or_dead(self) -> bool:
        return not self.is_alive() or self.is_ready()

    def said(self, event: str) -> int:
        """Count the lines of its log with this event, over all starts of the process."""
        mark = json.dumps({"event": event})[1:-1]
        return self.log.read_text().count(mark) if self.log.exists() else 0

    def last_log_line(self) -> str:
        return self.log.read_text().rstrip().rpartition("\n")[2][-MAX_LOG_LINE_CHARACTERS:]

    def _running(self) -> Child:
        if self._child is None:
            raise ProcessLookupError(f"{self.name} is not running")
        return self._child


async def watch(replicas: Sequence[Replica], ledger: Ledger) -> None:
    """Watch the replicas until the task is cancelled."""
    while True:
        for replica in replicas:
            if replica.is_struck or replica.is_alive():
                continue
            exit_code = await replica.kill()
            ledger.ended.append(Ended(replica.name, now(), exit_code or 0, replica.last_log_line()))
            replica.start()
        await asyncio.sleep(WATCH_SECONDS)
