"""Children end with us, at the latest when the next run looks; strangers are never touched."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stack.directory import claim
from stack.processes import Child, boot_id, end_leftovers, spawn, start_time, wait_until
from tests.stack.living_processes import ends

# A process that holds a child until it is killed; the child's command follows as arguments.
HOLDER = """
import os, sys, threading, time
from pathlib import Path
from stack.directory import claim
from stack.processes import spawn

claimed = claim(Path(sys.argv[1]))
def hold():
    spawn("held", sys.argv[2:], records=claimed.records, log=claimed.path / "log", env=dict(os.environ), cwd=Path("/"))
thread = threading.Thread(target=hold)
thread.start()
thread.join()
print("holding", flush=True)
time.sleep(100)
"""

# A child that does what it can to stay: deaf to the parent's death, with a descendant in a session of its own.
CLINGING = """
import ctypes, subprocess, sys, time
ctypes.CDLL(None).prctl(1, 0)
descendant = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print(descendant.pid, flush=True)
time.sleep(1000)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    children: list[Child] = []

    def spawn_here(*command: str) -> Child:
        name = f"child-{len(children)}"
        child = spawn(
            name, command, records=tmp_path / "children", log=tmp_path / name, env=dict(os.environ), cwd=tmp_path
        )
        children.append(child)
        return child

    yield spawn_here
    for child in children:
        child.stop(signal.SIGKILL)


def hold(directory: Path, *command: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", HOLDER, str(directory), *command]
    holder = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "holding\n"
    return holder


def kill(holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.communicate()


def held_pid(directory: Path) -> int:
    pid: int = json.loads((directory / "children" / "held.json").read_text())["pid"]
    return pid


def members_of_group(leader: int) -> list[int]:
    listing = subprocess.run(["ps", "-o", "pid=", "--sid", str(leader)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in listing.stdout.split()]


def test_a_child_ends_when_its_parent_is_killed(directory: Path) -> None:
    holder = hold(directory, "sleep", "1000")
    child = held_pid(directory)
    assert start_time(child) is not None

    kill(holder)

    assert ends(child)


def test_a_child_outlives_the_thread_that_asked_for_it(start: Callable[..., Child]) -> None:
    children: list[Child] = []
    thread = threading.Thread(target=lambda: children.append(start("sleep", "1000")))
    thread.start()
    thread.join()

    assert not children[0].wait(0.3)


def test_a_child_that_ignores_signals_is_ended_by_the_next_run(directory: Path) -> None:
    holder = hold(directory, sys.executable, "-c", CLINGING)
    child = held_pid(directory)
    assert wait_until(lambda: (directory / "log").read_text().endswith("\n"), 10)
    descendant = int((directory / "log").read_text())
    kill(holder)
    assert not ends(child, seconds=0.3)
    assert not ends(descendant, seconds=0.1)

    claim(directory).release()

    assert start_time(child) is None
    assert start_time(descendant) is None


def test_the_next_run_finds_a_descendant_even_if_the_child_itself_is_gone(directory: Path) -> None:
    holder = hold(directory, sys.executable, "-c", CLINGING)
    child = held_pid(directory)
    assert wait_until(lambda: (directory / "log").read_text().endswith("\n"), 10)
    descendant = int((directory / "log").read_text())
    kill(holder)
    os.kill(child, signal.SIGKILL)
    assert ends(child)
    assert not ends(descendant, seconds=0.1)

    claim(directory).release()

    assert start_time(descendant) is None


@pytest.mark.parametrize(
    "difference", [{"started": 1}, {"boot": "another boot"}], ids=["a recycled process id", "another boot"]
)
def test_another_process_with_the_same_process_id_is_not_ended(tmp_path: Path, difference: dict[str, object]) -> None:
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        proof = {
            "pid": stranger.pid,
            "started": start_time(stranger.pid),
            "boot": boot_id(),
            "mark": "no process has this",
            "when_orphaned": int(signal.SIGKILL),
            "command": ["sleep"],
        }
        (tmp_path / "held.json").write_text(json.dumps({**proof, **difference}))

        assert end_leftovers(tmp_path) == []

        assert stranger.poll() is None
        stranger.kill()


def test_a_record_that_was_never_finished_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "half.json").write_text('{"pid": 12')

    assert end_leftovers(tmp_path) == []

    assert list(tmp_path.iterdir()) == []


def test_stopping_reaches_the_whole_group_and_removes_the_record(start: Callable[..., Child], tmp_path: Path) -> None:
    child = start("sh", "-c", "sleep 1000 & exec sleep 1000")
    assert wait_until(lambda: len(members_of_group(child.pid)) == 2, 5)
    group = members_of_group(child.pid)

    child.stop()

    assert all(ends(pid) for pid in group)
    assert list((tmp_path / "children").iterdir()) == []


def test_a_child_that_does_not_listen_is_killed_after_the_grace_time(
    start: Callable[..., Child], tmp_path: Path
) -> None:
    child = start("sh", "-c", "trap '' TERM; echo deaf; while true; do sleep 0.1; done")
    assert wait_until(lambda: (tmp_path / "child-0").read_text() == "deaf\n", 10)

    assert child.stop(grace_seconds=0.3) == -signal.SIGKILL


def test_a_paused_child_can_be_stopped(start: Callable[..., Child]) -> None:
    child = start("sleep", "1000")
    child.send(signal.SIGSTOP)

    assert child.stop(grace_seconds=5) == -signal.SIGTERM


def test_the_exit_code_of_a_child_that_ended_by_itself_is_kept(start: Callable[..., Child]) -> None:
    child = start("sh", "-c", "exit 7")

    assert child.wait(5)
    assert child.stop() == 7
    assert child.stop() == 7
