"""Runs a private Postgres on the loopback address, with a free port, a password and a directory of its own. The server
is a child of this process, in the foreground.

The port and the data live as long as the object: they survive `stop`, `restart` and crashes of the server, and `close`
removes them. Every new object starts afresh.
"""

import os
import secrets
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from stack import processes, roles
from stack.directory import LOGS, Claim, claim
from stack.errors import StartError
from stack.ports import LOOPBACK, free_port
from stack.processes import Child, spawn
from stack.stack_part import StackPart
from stack.unprivileged import Quarters, find_quarters

DATABASE = "duebell"
START_SECONDS = 300.0
STOP_SECONDS = 20.0
ATTEMPTS = 3

ShutdownMode = Literal["smart", "fast", "immediate"]
SIGNALS: Mapping[ShutdownMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}


class Postgres(StackPart):
    """A private server: `with Postgres(directory) as postgres:` runs one in `directory/postgres`. With `standby_of`, it
    starts as a copy of that other one, which must be running, and follows it until `promote()`.
    """

    def __init__(
        self,
        directory: Path,
        *,
        logs: Path | None = None,
        fsync: bool = True,
        settings: Mapping[str, str] | None = None,
        standby_of: "Postgres | None" = None,
    ) -> None:
        self.directory = directory.absolute() / "postgres"
        self.log = (logs or directory / LOGS).absolute() / "postgres.log"
        self.port = 0
        self._primary = standby_of
        self.password: str = standby_of.password if standby_of else secrets.token_hex(16)
        self.passwords: dict[str, str] = standby_of.passwords if standby_of else roles.new_passwords()
        self._settings = {"max_connections": "200", **({} if fsync else _CARELESS), **(settings or {})}
        self._claim: Claim | None = None
        self._quarters: Quarters | None = None
        self._server: Child | None = None

    @property
    def url(self) -> str:
        """The address for the operator, who owns the database."""
        return f"postgresql://{DATABASE}:{self.password}@{LOOPBACK}:{self.port}/{DATABASE}"

    def url_of(self, role: str) -> str:
        """Return the address for one of the roles in `deploy/roles/postgres.sql`."""
        return f"postgresql://{role}:{self.passwords[role]}@{LOOPBACK}:{self.port}/{DATABASE}"

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        if self._server is None:
            raise RuntimeError("Postgres is not running")
        return self._server.pid

    def alive(self) -> bool:
        return self._server is not None and self._server.alive()

    def start(self) -> None:
        """Start the server and wait until it takes connections; the first time, create its database."""
        if self._quarters is not None:
            return self._serve(self._quarters)
        self._claim = claim(self.directory)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)
        quarters = find_quarters(self._claim)
        if self._primary is None:
            self._create_cluster(quarters)
            self._serve_on_free_port(quarters)
            self._create_database(quarters)
            self._create_roles(quarters)
        else:
            self._copy(self._primary, quarters)
            self._serve_on_free_port(quarters)
        self._quarters = quarters
        return None

    def stop(self, mode: ShutdownMode = "fast") -> None:
        """Stop the server; the data stays."""
        if self._server is not None:
            self._server.stop(SIGNALS[mode], STOP_SECONDS)
            self._server = None

    def restart(self, mode: ShutdownMode = "immediate") -> None:
        """Stop and start the server. The mode `immediate` is a crash: every connection breaks, and Postgres recovers
        from its log.
        """
        self.stop(mode)
        self.start()

    def promote(self) -> None:
        """Make a standby take writes. Returns when it does."""
        if self._quarters is None:
            raise RuntimeError("Postgres has not been started")
        options = ["promote", "--pgdata", str(_data_of(self._quarters))]
        self._finish(self._spawn(self._quarters, "pg_ctl", options), "be promoted")

    def follow(self, primary: "Postgres") -> None:
        """Become a standby of the other server. The data is replaced by a copy of the other's; the port stays."""
        if self._quarters is None:
            raise RuntimeError("Postgres has not been started")
        self.stop("immediate")
        shutil.rmtree(_data_of(self._quarters))
        self._copy(primary, self._quarters)
        self._serve(self._quarters)

    def close(self) -> None:
        """End the server and remove its data. No checkpoint is written, because the data is removed."""
        self.stop("immediate")
        if self._claim is not None:
            self._claim.empty()
            self._claim.release()
            self._claim = None
            self._quarters = None

    def _create_cluster(self, quarters: Quarters) -> None:
        password_file = _hand_over(self.password, quarters, "password")
        options = [
            *("--pgdata", str(_data_of(quarters)), "--username", DATABASE),
            *("--auth", "scram-sha-256", "--pwfile", str(password_file)),
            *("--encoding", "UTF8", "--locale", "C", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),
            # 128 random bits need no stretching, and connecting becomes cheap.
            *("--no-sync", "--no-instructions", "--set", "scram_iterations=1", "--set", "timezone=UTC"),
        ]
        self._finish(self._spawn(quarters, "initdb", options), "create its data directory")
        password_file.unlink()

    def _copy(self, primary: "Postgres", quarters: Quarters) -> None:
        options = [
            *primary.as_owner(),
            *("--pgdata", str(_data_of(quarters)), "--write-recovery-conf", "--checkpoint", "fast", "--no-sync"),
        ]
        copy = self._spawn(quarters, "pg_basebackup", options, {"PGPASSWORD": self.password})
        self._finish(copy, "copy its primary")

    def _create_database(self, quarters: Quarters) -> None:
        env = {"PGPASSWORD": self.password, "PGDATABASE": "postgres"}
        self._finish(self._spawn(quarters, "createdb", [*self.as_owner(), DATABASE], env), "create its database")

    def _create_roles(self, quarters: Quarters) -> None:
        script = _hand_over(roles.POSTGRES_SCRIPT.read_text(), quarters, "roles.sql")
        options = [*self.as_owner(), "--quiet", "--no-psqlrc", "--file", str(script), DATABASE]
        env = {"PGPASSWORD": self.password, **roles.as_variables(self.passwords)}
        self._finish(self._spawn(quarters, "psql", options, env), "create the services' roles")
        script.unlink()

    def as_owner(self) -> list[str]:
        """Return the options with which Postgres' programs connect as the owner of the database."""
        return ["--host", LOOPBACK, "--port", str(self.port), "--username", DATABASE, "--no-password"]

    def _serve_on_free_port(self, quarters: Quarters) -> None:
        for _ in range(ATTEMPTS - 1):
            self.port = free_port()
            try:
                return self._serve(quarters)
            except StartError as failure:
                # Between finding the port and binding it, another process may have.
                if "Address already in use" not in str(failure):
                    raise
        self.port = free_port()
        return self._serve(quarters)

    def _serve(self, quarters: Quarters) -> None:
        data = _data_of(quarters)
        settings = {
            **self._settings,
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        server = self._spawn(quarters, "postgres", ["-D", str(data), *options])
        self._server = server
        decided = processes.wait_until(lambda: not server.alive() or _is_ready(data, server.pid), START_SECONDS)
        if not decided or not server.alive():
            self.stop("immediate")
            raise self._failure("start")

    def _spawn(
        self, quarters: Quarters, program: str, options: list[str], env: Mapping[str, str] | None = None
    ) -> Child:
        if self._claim is None:
            raise RuntimeError("Postgres has no directory yet")
        return spawn(
            program,
            quarters.command(program, *options),
            records=self._claim.records,
            log=self.log,
            # Without this process's environment: a PGDATA or PGPORT that is set for another server must not reach this
            # one.
            env={"PATH": os.defpath, "LC_ALL": "C", **(env or {})},
            cwd=Path("/"),
            account=quarters.account,
            when_orphaned=signal.SIGQUIT,
        )

    def _finish(self, child: Child, doing: str) -> None:
        child.wait(START_SECONDS)
        if child.stop(signal.SIGKILL) != 0:
            raise self._failure(doing)

    def _failure(self, doing: str) -> StartError:
        return StartError(
            f"Postgres could not {doing}.",
            log=self.log,
            next_step="read the log; a full disk or no memory left are the usual causes. `make up` starts afresh.",
        )


# For tests alone: a commit survives the death of Postgres, but not of the machine. (With synchronous_commit off it
# would not even survive that of Postgres.)
_CARELESS = {"fsync": "off", "full_page_writes": "off"}


def _hand_over(text: str, quarters: Quarters, name: str) -> Path:
    """Write a file that only the programs of Postgres can read."""
    file = quarters.directory / name
    file.touch(mode=0o600)
    file.write_text(text)
    if quarters.account is not None:
        os.chown(file, quarters.account.uid, quarters.account.gid)
    return file


def _data_of(quarters: Quarters) -> Path:
    return quarters.directory / "data"


def _is_ready(data: Path, pid: int) -> bool:
    """Tell whether the server itself says that it is ready, in the last line of its lock file; the first has its
    process id. A standby that takes readers says "standby".
    """
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return False
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() in {"ready", "standby"}
