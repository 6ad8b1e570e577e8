"""The project of docker-compose.yml as a user runs it: `docker compose` with an .env of this run."""

import json
import re
import secrets
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stack.processes import wait_until
from tools.compose.errors import StepError
from tools.engine.layout import PROJECT

NAME = "duebell"
COMMAND_SECONDS = 600.0
HEALTHY_SECONDS = 180.0
# Not the usual ones: .env chooses them.
PORTS = {
    "POSTGRES_PORT": 25432,
    "RABBITMQ_PORT": 25672,
    "RABBITMQ_MANAGEMENT_PORT": 25673,
    "RECEIVER_PORT": 28090,
    "PROMETHEUS_PORT": 29090,
    "GRAFANA_PORT": 23000,
    "CONSOLE_PORT": 28080,
}
CHANGE_ME = "change-me"  # a password in .env.example


@dataclass(frozen=True, slots=True)
class Container:
    id: str
    service: str
    state: str
    health: str
    exit_code: int

    @property
    def is_well(self) -> bool:
        """True if the container is as well as it gets: healthy, or a step that has ended in good order."""
        return (self.state, self.exit_code) == ("exited", 0) or (self.state == "running" and self.health == "healthy")


class Project:
    """Runs `docker compose`. What it prints goes to `log`; a command that fails raises StepError."""

    def __init__(self, directory: Path, log: Path, **settings: str) -> None:
        example = re.findall(r"^([A-Z_]+)=(.*)$", (PROJECT / ".env.example").read_text(), re.MULTILINE)
        self.settings = {name: secrets.token_hex(8) if value == CHANGE_ME else value for name, value in example}
        self.settings |= {name: str(port) for name, port in PORTS.items()} | settings
        self._environment = directory / "compose.env"
        self._log = log

    @property
    def command(self) -> list[str]:
        return ["docker", "compose", "--project-name", NAME, "--env-file", str(self._environment)]

    @property
    def database_url(self) -> str:
        """The operator's address of Postgres, from outside of the containers."""
        return f"postgresql://duebell:{self.settings['POSTGRES_PASSWORD']}@127.0.0.1:{PORTS['POSTGRES_PORT']}/duebell"

    @property
    def amqp_url(self) -> str:
        """The example application's address of RabbitMQ, from outside of the containers."""
        return f"amqp://my-app:{self.settings['APPLICATION_PASSWORD']}@127.0.0.1:{PORTS['RABBITMQ_PORT']}/"

    def run(self, *arguments: str, given: str = "", check: bool = True) -> str:
        """Run `docker compose …`, and return what it prints to its standard output."""
        self._environment.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()))
        return run_docker([*self.command, *arguments], self._log, given, check=check)

    def up(self, *arguments: str) -> None:
        """Start everything, and wait until it is healthy."""
        self.run("up", "--detach", *arguments)
        self.wait_until_healthy()

    def wait_until_healthy(self) -> None:
        if not wait_until(lambda: all(container.is_well for container in self.containers()), HEALTHY_SECONDS):
            ill = [f"{each.service} is {each.state} {each.health}" for each in self.containers() if not each.is_well]
            raise StepError(f"not healthy after {HEALTHY_SECONDS:.0f} s: {', '.join(ill)}")

    def containers(self) -> list[Container]:
        lines = self.run("ps", "--all", "--format", "json").splitlines()
        found: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return [
            Container(each["ID"], each["Service"], each["State"], each["Health"], each["ExitCode"]) for each in found
        ]

    def status(self) -> dict[str, Any]:
        """Return what `docker compose run --rm cli status` says."""
        said: dict[str, Any] = json.loads(self.run("run", "--rm", "cli", "status", check=False))
        return said


def run_docker(command: Sequence[str], log: Path, given: str = "", *, check: bool = True) -> str:
    """Run a command of docker within its time, and return what it prints. Raises StepError if it fails."""
    with log.open("a") as errors:
        errors.write(f"\n== {' '.join(command)}\n")
        errors.flush()
        try:
            done = subprocess.run(
                command,
                input=given,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                check=False,
                timeout=COMMAND_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise StepError(f"{' '.join(command)} took longer than {COMMAND_SECONDS:.0f} s") from None
        errors.write(done.stdout)
    if check and done.returncode != 0:
        last = [line for line in log.read_text().splitlines() if line.strip()][-1:]
        raise StepError(f"`{' '.join(command)}` ended with {done.returncode}: {''.join(last)}")
    return done.stdout
