"""Runs Duebell's own services as processes on the stack: prepares the stores, starts all services, and waits until each
says that it is ready. The preparations run as the operator, each service as its own user of either store.
"""

import base64
import http.client
import os
import secrets
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from stack import processes, roles
from stack.directory import RECORDS
from stack.errors import StartError
from stack.ports import LOOPBACK, free_port
from stack.postgres import Postgres
from stack.processes import Child, spawn
from stack.rabbitmq import RabbitMQ
from stack.roles import role_of
from stack.webhook_secrets import MERGED, secret_settings

SERVICES = ("consumer", "producer", "delivery")
CONSOLE = "console"
RECEIVER = "examples.receiver"
DEMO_SECRET = "demo"  # noqa: S105 - its name
PROJECT = Path(__file__).parent.parent
PREPARATIONS = {"migrate": "shared.migrate", "topology": "shared.topology"}
PREPARE_SECONDS = 60.0
READY_SECONDS = 30.0
GRACE_SECONDS = 20.0


@dataclass(frozen=True)
class ServiceContext:
    """What all services of a stack share: the stores' addresses for the operator, a claimed directory, a directory for
    logs, and settings. `own` has each service's own environment, such as the addresses for its own users."""

    database_url: str
    amqp_url: str
    directory: Path
    logs: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    project: Path = PROJECT
    own: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def on(cls, postgres: Postgres, rabbitmq: RabbitMQ, directory: Path, logs: Path) -> Self:
        own = {
            service: {
                "DATABASE_URL": postgres.url_of(role_of(service)),
                "AMQP_URL": rabbitmq.url_of(role_of(service)),
            }
            for service in SERVICES
        }
        own[CONSOLE] = {
            "DATABASE_URL": postgres.url_of(roles.READER),
            "AMQP_URL": rabbitmq.url_of(roles.CONSOLE_USER),
            # It listens on this machine alone.
            "CONSOLE_OPEN_ON_LOOPBACK": "true",
        }
        own["consumer"]["OPERATOR_USERS"] = roles.CONSOLE_USER
        secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
        # Everything here is on this machine, which Duebell otherwise refuses to call.
        here = {"WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8,::1/128"}
        of_consumer, of_delivery = secret_settings({DEMO_SECRET: secret}, os.environ)
        own["consumer"] |= {**here, **of_consumer}
        own["delivery"] |= {
            **here,
            **of_delivery,
            # A failing webhook is retried within seconds here, not within minutes.
            "RETRY_BASE_SECONDS": "1",
        }
        own[RECEIVER] = {"RECEIVER_SECRET": secret}
        return cls(postgres.url, rabbitmq.url, directory, logs, own=own)

    @property
    def webhook_secret(self) -> str:
        """The value of DEMO_SECRET, for receivers."""
        return self.own[RECEIVER]["RECEIVER_SECRET"]

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
            # Without a prefix that the user may have set for another broker.
            env={
                **os.environ,
                "PYTHONUNBUFFERED": "1",
                "AMQP_PREFIX": "",
                **stores,
                **self.own.get(module, {}),
                # The user's own settings for webhooks win.
                **_settings_of_the_user(),
                **self.settings,
                **more,
            },
            cwd=self.project,
        )


def _settings_of_the_user() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("WEBHOOK_", "RETRY_")) and name not in MERGED
    }


class Service:
    """One process of a service, with a port of its own for its HTTP. `name` tells replicas apart."""

    health = "/readyz"

    def __init__(self, context: ServiceContext, module: str, name: str | None = None) -> None:
        self.name = name or module
        self.log = context.log(self.name)
        self.port = free_port()
        self.url = f"http://{LOOPBACK}:{self.port}"
        self._context = context
        self._module = module
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        if self._child is None:
            raise RuntimeError(f"{self.name} is not running")
        return self._child.pid

    def start(self) -> None:
        """Start the process, without waiting for anything. Its log goes on from where an earlier start left it."""
        self._child = self._context.run(self.name, self._module, **self._address())

    def _address(self) -> dict[str, str]:
        return {"METRICS_HOST": LOOPBACK, "METRICS_PORT": str(self.port)}

    def alive(self) -> bool:
        return self._child is not None and self._child.alive()

    def ready(self) -> bool:
        """Tell whether the service says that it reaches its stores and finds them as it needs them."""
        return answers(self.port, self.health)

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until the service is ready. Raises StartError if it ends or is not ready in time."""
        if processes.wait_until(lambda: not self.alive() or self.ready(), seconds) and self.alive():
            return
        what = f"was not ready within {seconds:.0f} s" if self.alive() else f"ended with exit code {self.stop()}"
        raise StartError(
            f"The {self.name} {what}.", log=self.log, next_step="the log above says why; repair that and start again."
        )

    def stop(self, first: signal.Signals = signal.SIGTERM) -> int | None:
        """Ask the process to stop; kill it after the grace time. Returns its exit code; None if it was not running."""
        if self._child is None:
            return None
        child, self._child = self._child, None
        return child.stop(first, GRACE_SECONDS)

    def kill(self) -> None:
        """End the process as a crash would."""
        self.stop(signal.SIGKILL)


class Receiver(Service):
    """The example receiver of webhooks, which delivery can call on this machine."""

    health = "/healthz"

    def __init__(self, context: ServiceContext) -> None:
        super().__init__(context, RECEIVER, "receiver")

    def _address(self) -> dict[str, str]:
        return {"RECEIVER_HOST": LOOPBACK, "RECEIVER_PORT": str(self.port)}


class Console(Service):
    """The web console. Its pages have a port of their own; `url` is where they are."""

    def __init__(self, context: ServiceContext) -> None:
        super().__init__(context, CONSOLE)
        self.page_port = free_port()
        self.url = f"http://{LOOPBACK}:{self.page_port}"

    def _address(self) -> dict[str, str]:
        return {**super()._address(), "CONSOLE_HOST": LOOPBACK, "CONSOLE_PORT": str(self.page_port)}


def answers(port: int, path: str) -> bool:
    """Tell whether a GET of the path on this port answers 200."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextmanager
def receiver(context: ServiceContext) -> Iterator[Receiver]:
    started = Receiver(context)
    started.log.unlink(missing_ok=True)
    started.start()
    try:
        started.wait_ready()
        yield started
    finally:
        started.stop()


@contextmanager
def console(context: ServiceContext) -> Iterator[Console]:
    """Start the console, and yield it when it is ready, until the block ends. The stores have to be prepared."""
    started = Console(context)
    started.log.unlink(missing_ok=True)
    started.start()
    try:
        started.wait_ready()
        yield started
    finally:
        started.stop()


def prepare(context: ServiceContext) -> None:
    """Bring the schema up to date and declare exchanges and queues, as a deployment would before it starts services."""
    steps = {name: context.run(name, module) for name, module in PREPARATIONS.items()}
    outcomes = {name: (step.wait(PREPARE_SECONDS), step.stop(signal.SIGKILL)) for name, step in steps.items()}
    for name, (in_time, exit_code) in outcomes.items():
        if exit_code != 0:
            what = f"failed with exit code {exit_code}" if in_time else f"took longer than {PREPARE_SECONDS:.0f} s"
            raise StartError(f"The step {name} {what}.", log=context.log(name), next_step="the log above says why.")


@contextmanager
def services(context: ServiceContext, names: Sequence[str] = SERVICES) -> Iterator[dict[str, Service]]:
    """Migrate, start the named services, and yield them when they are ready. After the block they are stopped in good
    order, the last started first.
    """
    running = {name: Service(context, name) for name in names}
    for name in (*PREPARATIONS, *names):
        context.log(name).unlink(missing_ok=True)
    with ExitStack() as stopping:
        if names:
            prepare(context)
        for service in running.values():
            stopping.callback(service.stop)
            service.start()
        for service in running.values():
            service.wait_ready()
        yield running
