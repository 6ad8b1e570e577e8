"""Runs a command beside a container engine, in network, mount and process namespaces of its own.

The kernel ends every process of the namespaces, containers included, and undoes their mounts, interfaces and packet
filter rules when their first process ends; and that one ends with this process, however this one ends. The way out, to
registries and package mirrors, is one process on this machine's network, which connects as any program does.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from stack.directory import claim
from stack.errors import StackError
from stack.processes import wait_until
from tools.engine.layout import CGROUP, CGROUPS, ENGINE, ENGINE_PACKAGES, ENGINE_ROOT, PROJECT, RELEASE
from tools.engine.packages import unpack

WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
ENGINE_NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--ipc", "--fork", "--kill-child")
NAMESPACE_START_SECONDS = 30.0
NAMESPACE_STOP_SECONDS = 90.0  # for the command and the engine to end by themselves


def run_beside_engine(command: Sequence[str]) -> int:
    """Run the command to its end, and return its exit status. What it prints goes where this process prints.

    On KeyboardInterrupt the command and the engine are asked to end, and have some time to do so.
    """
    if os.geteuid() != 0:
        raise StackError("A container engine needs root.\n  what to do: run this as root")
    claimed = claim(ENGINE / "run")
    logs = claimed.path / "logs"
    logs.mkdir(exist_ok=True)
    try:
        _remove_control_groups()
        if not ENGINE_ROOT.exists():
            sys.stdout.write("fetching a container engine from Debian's packages, once …\n")
            sys.stdout.flush()
            unpack(ENGINE_PACKAGES, RELEASE, ENGINE_ROOT, logs / "packages.log")
        with _namespaces(command) as (running, first), _way_out(first, logs / "network.log"):
            return running.wait()
    finally:
        _remove_control_groups()
        claimed.release()


@contextmanager
def _namespaces(command: Sequence[str]) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Start the command in new namespaces. Yields the process that waits for it, and the id of their first process."""
    init = (str(ENGINE_ROOT / "usr/bin/tini-static"), "-g", "--")
    inside = (sys.executable, "-m", "tools.engine.inside", *command)
    # In a session of its own: Ctrl-C is for this process alone, which then asks the command to end.
    with subprocess.Popen(
        [*WITH_PARENT, *ENGINE_NAMESPACES, *init, *inside], cwd=PROJECT, start_new_session=True
    ) as running:
        first = 0
        try:
            first = _first_process(running)
            yield running, first
        except BaseException:
            if first and running.poll() is None:
                os.kill(first, signal.SIGTERM)
                wait_until(lambda: running.poll() is not None, NAMESPACE_STOP_SECONDS)
            raise
        finally:
            running.kill()


def _first_process(running: "subprocess.Popen[bytes]") -> int:
    """Wait until unshare has made the namespaces, and return the id of their first process."""
    own = Path("/proc/self/ns/net").readlink()
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")

    def separate() -> bool:
        found = children.read_text().split()
        return bool(found) and Path(f"/proc/{found[0]}/ns/net").readlink() != own

    if (
        not wait_until(lambda: running.poll() is not None or separate(), NAMESPACE_START_SECONDS)
        or running.poll() is not None
    ):
        raise StackError("this machine does not let a process make namespaces")
    return int(children.read_text().split()[0])


@contextmanager
def _way_out(first: int, log: Path) -> Iterator[None]:
    """Give the namespaces a network interface, tap0, whose other end is a process on this machine's network."""
    libraries = next((ENGINE_ROOT / "usr/lib").glob("*-linux-gnu*"))
    loader = next((ENGINE_ROOT / "usr/lib").rglob("ld-linux*.so.*"))
    program = (str(loader), "--library-path", str(libraries), str(ENGINE_ROOT / "usr/bin/slirp4netns"))
    options = ("--configure", "--mtu=65520", "--disable-host-loopback", str(first), "tap0")
    command = [*WITH_PARENT, *program, *options]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        ) as running,
    ):
        try:
            yield
        finally:
            running.terminate()


def _remove_control_groups() -> None:
    """Remove what an engine that was killed left there: directories without processes."""
    found = [path for pattern in (CGROUP, f"*/{CGROUP}") for path in CGROUPS.glob(pattern)]
    for top in found:
        for directory in [*sorted((path for path in top.rglob("*/") if path.is_dir()), reverse=True), top]:
            directory.rmdir()
