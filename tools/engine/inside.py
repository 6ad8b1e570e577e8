"""The inner part of tools/engine/namespace.py: starts the engine, gets the images, runs a command, and ends the engine.

The engine's root is the directory of its unpacked packages. The checkout is there under its usual path, so that a path
of the checkout means the same file to the engine and to the command.
"""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from stack.errors import StackError
from stack.processes import wait_until
from stack.up import stop_on_signals
from tools.engine.images import get_images
from tools.engine.layout import CGROUP, DATA, ENGINE, ENGINE_ROOT, PROJECT, SOCKET

START_SECONDS = 60.0
STOP_SECONDS = 30.0
CLEAN_SECONDS = 120.0
LOGS = ENGINE / "run/logs"
PROGRAMS = ENGINE / "run/bin"
CONTAINERD_SOCKET = ENGINE_ROOT / "run/containerd.sock"
NAME_SERVER = "10.0.2.3"  # slirp4netns' own
# `docker`, as the command finds it: the client in the engine's root, in the same directory.
CLIENT = """#!{python}
import os, sys
directory = os.getcwd()
os.chroot("{root}")
os.chdir(directory)
os.execv("/usr/bin/docker", ["docker", *sys.argv[1:]])
"""


def main() -> int:
    stop_on_signals()
    with ExitStack() as running:
        try:
            _start_engine(running)
            _remove_leftovers()
            get_images(_tell)
            return _run(sys.argv[1:])
        except StackError as problem:
            sys.stderr.write(f"{problem}\n")
            return 1
        except KeyboardInterrupt:
            return 130


def _start_engine(running: ExitStack) -> None:
    """Start containerd and dockerd. Afterwards `docker`, here and in child processes, is the client of this engine."""
    _mount()
    _wait_for_network()
    os.environ |= _environment()
    containerd = running.enter_context(_daemon("containerd", *_containerd()))
    if not wait_until(CONTAINERD_SOCKET.exists, START_SECONDS):
        raise StackError(f"containerd does not answer; its log is {LOGS}/containerd.log")
    running.enter_context(_daemon("dockerd", *_dockerd(containerd.pid)))
    if not wait_until(_answers, START_SECONDS):
        raise StackError(f"dockerd does not answer; its log is {LOGS}/dockerd.log")


def _mount() -> None:
    """Mount what the engine's root needs. It all goes with the namespaces."""
    for directory in ("proc", "sys", "dev", "run", "tmp", "etc", "var"):
        (ENGINE_ROOT / directory).mkdir(exist_ok=True)
    (ENGINE_ROOT / "tmp").chmod(0o1777)
    run = ENGINE_ROOT / "var/run"
    if not run.is_symlink():
        run.symlink_to("/run")
    for name in ("iptables", "ip6tables"):
        for suffix in ("", "-save", "-restore"):
            link = ENGINE_ROOT / f"usr/sbin/{name}{suffix}"
            if not link.is_symlink():
                link.symlink_to(f"{name}-nft{suffix}")
    names = ENGINE / "run/resolv.conf"
    names.write_text(f"nameserver {NAME_SERVER}\n")
    (ENGINE_ROOT / "etc/resolv.conf").touch()
    project = ENGINE_ROOT / PROJECT.relative_to("/")
    project.mkdir(parents=True, exist_ok=True)
    DATA.mkdir(exist_ok=True)
    mounts: tuple[tuple[str | Path, ...], ...] = (
        ("-t", "proc", "proc", "/proc"),
        ("--bind", ENGINE_ROOT, ENGINE_ROOT),
        ("-t", "proc", "proc", ENGINE_ROOT / "proc"),
        ("-t", "sysfs", "sysfs", ENGINE_ROOT / "sys"),
        ("--rbind", "/sys/fs/cgroup", ENGINE_ROOT / "sys/fs/cgroup"),
        ("--rbind", "/dev", ENGINE_ROOT / "dev"),
        ("-t", "tmpfs", "tmpfs", ENGINE_ROOT / "run"),
        ("--bind", PROJECT, project),
        ("--bind", names, ENGINE_ROOT / "etc/resolv.conf"),
        ("--bind", names, Path("/etc/resolv.conf").resolve()),
    )
    for arguments in mounts:
        subprocess.run(["mount", *arguments], check=True, timeout=30)


def _wait_for_network() -> None:
    """Wait for the default route, which slirp4netns adds last."""
    subprocess.run([*_in_root("ip", "link", "set", "lo", "up")], check=True, timeout=30)

    def routed() -> bool:
        routes = [line.split() for line in Path("/proc/net/route").read_text().splitlines()]
        return any(route[:2] == ["tap0", "00000000"] for route in routes)

    if not wait_until(routed, START_SECONDS):
        raise StackError(f"the namespaces have no way out; {LOGS}/network.log tells why")


def _environment() -> dict[str, str]:
    """Return variables by which `docker` is the engine's client, and other programs find the engine."""
    PROGRAMS.mkdir(exist_ok=True)
    client = PROGRAMS / "docker"
    client.write_text(CLIENT.format(python=sys.executable, root=ENGINE_ROOT))
    client.chmod(0o755)
    return {
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "DOCKER_CONFIG": "/run/docker-config",
        "DOCKER_HOST": f"unix://{SOCKET}",
        # What is left goes with the namespaces.
        "TESTCONTAINERS_RYUK_DISABLED": "true",
        # Where this machine is a container itself, ports of the engine's containers are here all the same.
        "TESTCONTAINERS_CONNECTION_MODE": "docker_host",
        "TESTCONTAINERS_HOST_OVERRIDE": "localhost",
    }


def _in_root(*command: str) -> tuple[str, ...]:
    return ("chroot", str(ENGINE_ROOT), *command)


def _containerd() -> tuple[str, ...]:
    return (
        "unshare", "--mount", "--propagation=private", sys.executable, "-m", "tools.engine.enter_root",
        "containerd", "--root", f"{DATA}/containerd", "--state", "/run/containerd", "--address", "/run/containerd.sock",
    )  # fmt: skip


def _dockerd(containerd: int) -> tuple[str, ...]:
    """Return the command of the daemon. It works in the mount namespace of containerd: each sees the other's mounts."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return (
        "nsenter", f"--mount=/proc/{containerd}/ns/mnt", "dockerd",
        "--containerd=/run/containerd.sock", f"--data-root={DATA}/docker",
        "--exec-root=/run/docker", "--pidfile=/run/docker.pid",
        f"--host=unix://{SOCKET}", f"--cgroup-parent=/{CGROUP}", "--exec-opt=native.cgroupdriver=cgroupfs",
        # The default of new installations.
        "--feature=containerd-snapshotter=true",
        *((f"--default-ulimit=nofile={files}:{files}",) if files != resource.RLIM_INFINITY else ()),
    )  # fmt: skip


@contextmanager
def _daemon(name: str, *command: str) -> Iterator["subprocess.Popen[bytes]"]:
    with (
        (LOGS / f"{name}.log").open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True) as running,
    ):
        try:
            yield running
        finally:
            running.terminate()
            with suppress(subprocess.TimeoutExpired):
                running.wait(STOP_SECONDS)
            running.kill()


def _answers() -> bool:
    asked = subprocess.run(["docker", "version"], capture_output=True, check=False, timeout=30)
    return asked.returncode == 0


def _remove_leftovers() -> None:
    """Remove the containers, networks and volumes that an engine which was killed has left. Images stay."""

    def docker(*arguments: str) -> str:
        command = ["docker", *arguments]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=CLEAN_SECONDS).stdout

    if left := docker("ps", "--all", "--quiet").split():
        docker("rm", "--force", "--volumes", *left)
    docker("network", "prune", "--force")
    docker("volume", "prune", "--all", "--force")


def _run(command: Sequence[str]) -> int:
    with subprocess.Popen(command, cwd=PROJECT) as running:
        try:
            return running.wait()
        except KeyboardInterrupt:
            with suppress(subprocess.TimeoutExpired, ProcessLookupError):
                running.send_signal(signal.SIGTERM)
                running.wait(STOP_SECONDS)
            raise
        finally:
            running.kill()


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
