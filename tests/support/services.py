"""The services under test: as tasks of the test's own loop, where a test wants to look inside, or as real processes,
where it wants to kill them.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consumer.main import consume
from consumer.settings import ConsumerSettings
from delivery.main import deliver
from delivery.settings import DeliverySettings
from producer.main import produce
from producer.settings import ProducerSettings
from shared.runtime.loops import Stop
from stack.processes import wait_until_frozen
from tests.support.eventually import PATIENCE
from tests.support.stores import Site

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def running_consumer(site: Site, **overrides: Any) -> AsyncIterator[None]:
    """Loopback is open, as in `running_delivery`."""
    settings = ConsumerSettings(**{**_common(site, "consumer"), "webhook_allow_networks": "127.0.0.0/8", **overrides})
    async with _running(lambda stop: consume(settings, stop)):
        yield


@asynccontextmanager
async def running_producer(site: Site, **overrides: Any) -> AsyncIterator[None]:
    settings = ProducerSettings(**{**_common(site, "producer"), **_direct(site), **overrides})
    async with _running(lambda stop: produce(settings, stop)):
        yield


@asynccontextmanager
async def running_delivery(site: Site, **overrides: Any) -> AsyncIterator[None]:
    """Loopback is open, where the tests' receivers are; retries come quickly; and a lease lasts longer than a test
    waits, so that no row is done only because its lease ran out."""
    defaults = {
        "webhook_allow_networks": "127.0.0.0/8",
        "retry_base_seconds": 0.05,
        "shutdown_grace_seconds": 5,
        "lease_margin_seconds": 600,
    }
    settings = DeliverySettings(**{**_common(site, "delivery"), **defaults, **overrides})
    async with _running(lambda stop: deliver(settings, stop)):
        yield


def _common(site: Site, service: str) -> dict[str, Any]:
    return {
        "database_url": site.database_url_of(service),
        "amqp_url": site.amqp_url,
        "amqp_prefix": site.prefix,
        "metrics_port": 0,
    }


def _direct(site: Site) -> dict[str, str]:
    """Behind a pooler the producer listens by an address of Postgres itself."""
    direct = site.environment_of("producer").get("DATABASE_DIRECT_URL")
    return {} if direct is None else {"database_direct_url": direct}


@asynccontextmanager
async def _running(work: Any) -> AsyncIterator[None]:
    stop = Stop()
    task = asyncio.create_task(work(stop))
    try:
        yield
        assert not task.done() or task.result() is None, "the service ended by itself"
    finally:
        stop.request()
        await asyncio.wait_for(task, PATIENCE)


@dataclass(slots=True)
class ServiceProcess:
    """A service as a real process, `python -m <name>`, with its log in a file."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        wait_until_frozen(self.process.pid)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def terminate(self, within: float = PATIENCE) -> int:
        """Send SIGTERM and wait. Returns the exit status."""
        self.process.terminate()
        return self.process.wait(within)

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def said(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line["event"] == event]


@contextmanager
def service_process(
    name: str, where: Site | Mapping[str, str], directory: Path, **settings: str
) -> Iterator[ServiceProcess]:
    """On a site, with the service's own users and their rights; or in any environment."""
    with service_process_of(ROOT, name, where, directory, settings) as process:
        yield process


@contextmanager
def service_process_of(
    code: Path, name: str, where: Site | Mapping[str, str], directory: Path, settings: Mapping[str, str]
) -> Iterator[ServiceProcess]:
    """The same, of a release whose code is in another directory."""
    environment = where.environment_of(name) if isinstance(where, Site) else where
    log = directory / f"{name}-{len(list(directory.iterdir()))}.log"
    inherited = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", name],
            cwd=code,
            env={**inherited, "METRICS_PORT": "0", **environment, **settings},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield ServiceProcess(process, log)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.wait(PATIENCE)
