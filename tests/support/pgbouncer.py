"""PgBouncer in transaction mode before the Postgres of the tests, with its own defaults."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from stack import processes
from stack.ports import LOOPBACK, free_port
from stack.unprivileged import ORDINARY_USER

SECONDS = 60.0
# The first version that keeps the prepared statements of its clients apart.
NEEDED = (1, 21)


def find_program() -> str | None:
    """PGBOUNCER may name the program."""
    return os.environ.get("PGBOUNCER") or shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")


def version_of(program: str) -> tuple[int, ...]:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=SECONDS).stdout
    return tuple(int(part) for part in said.split()[1].split("."))


@contextmanager
def pgbouncer(database_port: int, directory: Path, roles: Mapping[str, str], **settings: object) -> Iterator[int]:
    """Run it, and yield its port. `roles` are the passwords of those who connect."""
    program = find_program()
    if program is None or version_of(program) < NEEDED:
        pytest.skip("there is no PgBouncer of 1.21 or later")
    port = free_port()
    users = directory / "pgbouncer-users.txt"
    users.write_text("".join(f'"{role}" "{password}"\n' for role, password in roles.items()))
    chosen = {
        "listen_addr": LOOPBACK,
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "scram-sha-256",
        "auth_file": users,
        "pool_mode": "transaction",
        **({"user": ORDINARY_USER} if os.geteuid() == 0 else {}),
        **settings,
    }
    file = directory / "pgbouncer.ini"
    lines = [
        "[databases]",
        f"* = host={LOOPBACK} port={database_port}",
        "[pgbouncer]",
        *(f"{k} = {v}" for k, v in chosen.items()),
    ]
    file.write_text("\n".join(lines) + "\n")
    log = directory / "pgbouncer.log"
    running = processes.spawn(
        "pgbouncer",
        [program, str(file)],
        records=directory,
        log=log,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        cwd=Path("/"),
    )
    try:
        ready = processes.wait_until(lambda: "process up" in log.read_text(), SECONDS)
        assert ready, log.read_text()
        yield port
    finally:
        running.stop(signal.SIGQUIT)  # SIGTERM waits for all clients since PgBouncer 1.23
