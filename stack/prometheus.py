"""Runs a private Prometheus on the loopback address, where Debian's package is installed, with the configuration and
the alerts of `deploy/prometheus/`, and the stack's own addresses in place of names.
"""

import http.client
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from stack import processes
from stack.directory import LOGS, Claim, claim
from stack.errors import StackError, StartError
from stack.ports import LOOPBACK, free_port
from stack.processes import Child, spawn
from stack.rabbitmq import RabbitMQ
from stack.services import SERVICES, Service
from stack.stack_part import StackPart

PROGRAM = "prometheus"
RABBITMQ_PLUGIN = "rabbitmq_prometheus"
FILES = Path(__file__).parent.parent / "deploy" / "prometheus"
PROMETHEUS_START_SECONDS = 30.0


def installed() -> bool:
    return shutil.which(PROGRAM) is not None


class Prometheus(StackPart):
    """A private server: `with Prometheus(directory, targets) as prometheus:` runs one in `directory/prometheus`.
    `targets` are addresses (host:port) for each job of `deploy/prometheus/prometheus.yml`.
    """

    def __init__(
        self,
        directory: Path,
        targets: Mapping[str, Sequence[str]],
        *,
        logs: Path | None = None,
        every: str | None = None,
    ) -> None:
        self.directory = directory.absolute() / "prometheus"
        self.log = (logs or directory / LOGS).absolute() / "prometheus.log"
        self.port = free_port()
        self.url = f"http://{LOOPBACK}:{self.port}"
        self._targets = targets
        self._every = every
        self._claim: Claim | None = None
        self._server: Child | None = None

    def alive(self) -> bool:
        return self._server is not None and self._server.alive()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        program = shutil.which(PROGRAM)
        if program is None:
            raise StackError("Prometheus is missing.\n  what to do: run `make prometheus`")
        self._claim = claim(self.directory)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)
        configuration = self.directory / "prometheus.yml"
        YAML().dump(configured(self._targets, self._every), configuration)
        server = spawn(
            "prometheus",
            [
                program,
                f"--config.file={configuration}",
                f"--storage.tsdb.path={self.directory / 'data'}",
                f"--web.listen-address={LOOPBACK}:{self.port}",
                "--log.level=warn",
            ],
            records=self._claim.records,
            log=self.log,
            env={"PATH": os.defpath, "GOMAXPROCS": "2"},
            cwd=Path("/"),
        )
        self._server = server
        decided = processes.wait_until(lambda: not server.alive() or _is_ready(self.port), PROMETHEUS_START_SECONDS)
        if not decided or not server.alive():
            raise StartError(
                "Prometheus could not start.", log=self.log, next_step="read the log; a port may have been taken."
            )

    def close(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None
        if self._claim is not None:
            self._claim.empty()
            self._claim.release()
            self._claim = None


def scrape_targets(rabbitmq: RabbitMQ, services: Mapping[str, Service]) -> dict[str, list[str]]:
    """Return the addresses of a stack's parts for each job; a service that does not run has none."""
    broker = f"{LOOPBACK}:{rabbitmq.plugin_ports[RABBITMQ_PLUGIN]}"
    own = {name: [f"{LOOPBACK}:{services[name].port}"] if name in services else [] for name in SERVICES}
    return {**own, "rabbitmq": [broker], "rabbitmq-queues": [broker]}


def configured(targets: Mapping[str, Sequence[str]], every: str | None = None) -> dict[str, Any]:
    """Return the content of `deploy/prometheus/prometheus.yml` with these addresses."""
    content: dict[str, Any] = YAML(typ="safe").load(FILES / "prometheus.yml")
    content["rule_files"] = [str(FILES / file) for file in content["rule_files"]]
    if every is not None:
        content["global"] |= {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every}
    for job in content["scrape_configs"]:
        del job["dns_sd_configs"]
        job["static_configs"] = [{"targets": list(targets[job["job_name"]])}]
    return content


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=2)
    try:
        connection.request("GET", "/-/ready")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
