"""A standby of a private Postgres: a copy that follows it, and takes over when it is told to."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from stack import processes
from stack.ports import LOOPBACK, free_port
from stack.postgres import DATABASE, Postgres

SECONDS = 60.0


@contextmanager
def standby_of(primary: Postgres, directory: Path) -> Iterator[int]:
    """The port it listens on."""
    quarters, port = primary._quarters, free_port()
    assert quarters is not None
    data = quarters.directory / "standby"
    address = ["--host", LOOPBACK, "--port", str(primary.port), "--username", DATABASE, "--no-password"]
    copy = primary._spawn(
        quarters,
        "pg_basebackup",
        [*address, "--pgdata", str(data), "--write-recovery-conf", "--checkpoint", "fast", "--no-sync"],
        {"PGPASSWORD": urlsplit(primary.url).password or ""},
    )
    primary._finish(copy, "be copied")
    # A standby needs room for as many connections as its primary has.
    settings = {**primary._settings, "port": str(port), "listen_addresses": LOOPBACK, "unix_socket_directories": ""}
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    log = directory / "standby.log"
    server = processes.spawn(
        "standby",
        quarters.command("postgres", "-D", str(data), *options),
        records=directory,
        log=log,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        cwd=Path("/"),
        account=quarters.account,
        when_orphaned=signal.SIGQUIT,
    )
    try:
        ready = processes.wait_until(lambda: "ready to accept read-only connections" in log.read_text(), SECONDS)
        assert ready, log.read_text()
        yield port
    finally:
        server.stop(signal.SIGINT)
