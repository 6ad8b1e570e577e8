"""`python -m stack.up` as a user meets it: up, said where, once only, down without a trace whatever happened."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from stack.directory import clean_up_after_the_dead
from stack.errors import StackError
from stack.processes import wait_until
from stack.services import Service, ServiceContext
from stack.up import RESTARTS_A_MINUTE, watch
from tests.stack.living_processes import no_process_has_text, processes_with_text

UP_SECONDS = 60


def up(directory: Path) -> subprocess.Popen[str]:
    """Only the stores: what is tested here is how they come and go."""
    command = [sys.executable, "-m", "stack.up", "--directory", str(directory), "--services"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_up(directory: Path, command: subprocess.Popen[str]) -> dict[str, str]:
    file = directory / "endpoints.json"
    wait_until(lambda: file.exists() or command.poll() is not None, UP_SECONDS)
    assert command.poll() is None, command.communicate()[0]
    endpoints: dict[str, str] = json.loads(file.read_text())
    return endpoints


def wait_for_line(command: subprocess.Popen[str], wanted: str) -> None:
    assert command.stdout is not None
    assert any(line.rstrip() == wanted for line in command.stdout), f"it never said: {wanted}"


def finish(command: subprocess.Popen[str]) -> str:
    return command.communicate(timeout=UP_SECONDS)[0]


def test_only_one_stack_runs_and_after_a_kill_the_next_one_starts_clean(directory: Path) -> None:
    first = up(directory)
    endpoints = wait_up(directory, first)
    assert set(endpoints) == {
        "database_url", "amqp_url", "reader_database_url", "reader_amqp_url", "management_url",
    }  # fmt: skip
    assert (directory / "endpoints.json").stat().st_mode & 0o777 == 0o600

    second = up(directory)
    refusal = finish(second)
    assert second.returncode == 1
    assert f"a stack is already up here ({directory}/up is in use by process {first.pid})" in refusal
    assert json.loads((directory / "endpoints.json").read_text()) == endpoints

    first.kill()
    finish(first)
    third = up(directory)
    assert wait_until(lambda: not (directory / "endpoints.json").exists(), 20)
    assert wait_up(directory, third) != endpoints
    wait_for_line(third, "Ctrl-C stops everything.")

    third.send_signal(signal.SIGINT)
    assert "Stopped. Nothing is left running." in finish(third)
    assert third.returncode == 0
    assert not (directory / "endpoints.json").exists()
    assert no_process_has_text(str(directory))


def test_killed_in_the_middle_of_its_start_it_leaves_nothing(directory: Path) -> None:
    command = up(directory)
    assert wait_until(lambda: len(processes_with_text(str(directory))) > 3, 20)

    command.kill()
    finish(command)

    assert no_process_has_text(str(directory), seconds=15)
    clean_up_after_the_dead(directory)  # files, too, in case Postgres had to run from a copy elsewhere


def test_a_part_that_ends_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "consumer.log").write_text("all is well\nout of memory\n")
    log = tmp_path / "consumer.log"
    fine, ended = SimpleNamespace(alive=lambda: True, log=log), SimpleNamespace(alive=lambda: False, log=log)

    with pytest.raises(StackError, match=r"consumer ended unexpectedly; stopping the rest\.(.|\n)*\| out of memory"):
        watch({"Postgres": fine, "consumer": ended})


class Fragile(Service):
    """Ends as soon as it is started."""

    starts = 0

    def start(self) -> None:
        self.starts += 1

    def alive(self) -> bool:
        return False

    def stop(self, first: signal.Signals = signal.SIGTERM) -> int | None:
        return -9


def test_a_service_that_ends_is_started_again_unless_it_keeps_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("stack.up.WATCH_SECONDS", 0.0)
    fragile = Fragile(ServiceContext("postgresql://", "amqp://", tmp_path, tmp_path), "consumer")
    with pytest.raises(StackError, match="consumer ended unexpectedly"):
        watch({"consumer": fragile})
    assert fragile.starts == RESTARTS_A_MINUTE
    assert "consumer ended with exit code -9; starting it again" in capsys.readouterr().out
