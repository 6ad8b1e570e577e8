"""Duebell's own services as processes on the stack: migrate, start them all, wait until each says it is ready."""

import http.client
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from stack import processes
from stack.directory import RECORDS
from stack.errors import StartError
from stack.ports import LOOPBACK, free_port
from stack.processes import Child, spawn

SERVICES = ("consumer", "producer")
PROJECT = Path(__file__).parent.parent
MIGRATE_SECONDS = 60.0
READY_SECONDS = 30.0
GRACE_SECONDS = 20.0


@dataclass(frozen=True)
class Ground:
    """What services stand on: the stores, a claimed directory, a place for logs, and settings for their environment."""

    database_url: str
    amqp_url: str
    directory: Path
    logs: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    project: Path = PROJECT

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def run(self, name: str, module: str, **more: str) -> Child:
        """Start `python -m module`."""
        self.logs.mkdir(parents=True, exist_ok=True)
        stores = {"DATABASE_URL": self.database_url, "AMQP_URL": self.amqp_url}
        return spawn(
            name,
            [sys.executable, "-m", module],
            records=self.directory / RECORDS,
            log=self.log(name),
            # Without a prefix that the user may have set for some other broker.
            env={**os.environ, "PYTHONUNBUFFERED": "1", "AMQP_PREFIX": "", **stores, **self.settings, **more},
            cwd=self.project,
        )


class Service:
    """One process of a service, with a port of its own for its HTTP; a name of its own tells replicas apart."""

    def __init__(self, ground: Ground, module: str, name: str | None = None) -> None:
        self.name = name or module
        self.log = ground.log(self.name)
        self.port = free_port()
        self.url = f"http://{LOOPBACK}:{self.port}"
        self._ground = ground
        self._module = module
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        if self._child is None:
            raise RuntimeError(f"{self.name} is not running")
        return self._child.pid

    def start(self) -> None:
        """Start it, without waiting for anything; its log goes on from where an earlier start left it."""
        self._child = self._ground.run(self.name, self._module, METRICS_HOST=LOOPBACK, METRICS_PORT=str(self.port))

    def alive(self) -> bool:
        return self._child is not None and self._child.alive()

    def ready(self) -> bool:
        """Whether it says that it reaches its stores and finds them as it needs them."""
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=2)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until it is ready; raises StartError if it ends or is not ready in time."""
        if processes.wait_until(lambda: not self.alive() or self.ready(), seconds) and self.alive():
            return
        what = f"was not ready within {seconds:.0f} s" if self.alive() else f"ended with exit code {self.stop()}"
        raise StartError(
            f"The {self.name} {what}.", log=self.log, next_step="the log above says why; mend that and start again."
        )

    def stop(self, first: signal.Signals = signal.SIGTERM) -> int | None:
        """Ask it to stop, kill it after the grace time, and return its exit code; None if it was not running."""
        if self._child is None:
            return None
        child, self._child = self._child, None
        return child.stop(first, GRACE_SECONDS)

    def kill(self) -> None:
        """End it as a crash would."""
        self.stop(signal.SIGKILL)


def migrate(ground: Ground) -> None:
    """Bring the schema up to date, as a deployment would before it starts services."""
    child = ground.run("migrate", "shared.migrate")
    in_time = child.wait(MIGRATE_SECONDS)
    exit_code = child.stop(signal.SIGKILL)
    if exit_code != 0:
        what = f"failed with exit code {exit_code}" if in_time else f"took longer than {MIGRATE_SECONDS:.0f} s"
        raise StartError(
            f"Migrating the database {what}.", log=ground.log("migrate"), next_step="the log above says why."
        )


@contextmanager
def services(ground: Ground, names: Sequence[str] = SERVICES) -> Iterator[dict[str, Service]]:
    """The named services, migrated, ready, until the block ends; stopped in good order, the last started first."""
    running = {name: Service(ground, name) for name in names}
    for name in ("migrate", *names):
        ground.log(name).unlink(missing_ok=True)
    with ExitStack() as stopping:
        if names:
            migrate(ground)
        for service in running.values():
            stopping.callback(service.stop)
            service.start()
        for service in running.values():
            service.wait_ready()
        yield running
