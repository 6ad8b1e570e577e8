"""A Postgres that speaks TLS and nothing else: Debian's, because the wheel's is built without it."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from stack import processes, roles
from stack.directory import claim
from stack.ports import LOOPBACK, free_port
from stack.unprivileged import Quarters, find_quarters
from tests.support.certificates import Authority, Certificate

DATABASE = roles.OPERATOR
SECONDS = 60.0


def debian_programs() -> Path | None:
    """Where Debian has put the newest Postgres, if it is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    return found[-1].parent if found else None


@dataclass(frozen=True, slots=True)
class TlsPostgres:
    port: int
    passwords: dict[str, str]

    def url_of(self, role: str, host: str = LOOPBACK, **parameters: str | Path) -> str:
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"postgresql://{role}:{self.passwords[role]}@{host}:{self.port}/{DATABASE}?{query}"


@contextmanager
def tls_postgres(directory: Path, programs: Path, authority: Authority, own: Certificate) -> Iterator[TlsPostgres]:
    """With the roles of `deploy/roles/postgres.sql`; the owner is `duebell`."""
    claimed = claim(directory / "tls-postgres")
    quarters = replace(find_quarters(claimed), programs=programs)
    made = TlsPostgres(free_port(), roles.new_passwords())
    _create_cluster(quarters, made.passwords[DATABASE])
    files = {name: _hand_over(file, quarters) for name, file in _files(authority, own).items()}
    settings = {"port": made.port, "listen_addresses": LOOPBACK, "unix_socket_directories": "", "fsync": "off"}
    options = [part for name, value in (settings | files).items() for part in ("-c", f"{name}={value}")]
    log = directory / "tls-postgres.log"
    server = processes.spawn(
        "postgres",
        quarters.command("postgres", "-D", str(quarters.directory / "data"), "-c", "ssl=on", *options),
        records=claimed.records,
        log=log,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        cwd=Path("/"),
        account=quarters.account,
        when_orphaned=signal.SIGQUIT,
    )
    try:
        assert processes.wait_until(lambda: _prepared(quarters, made), SECONDS), log.read_text()
        yield made
    finally:
        server.stop(signal.SIGINT)
        claimed.empty()
        claimed.release()


def _files(authority: Authority, own: Certificate) -> dict[str, Path]:
    return {"ssl_ca_file": authority.file, "ssl_cert_file": own.file, "ssl_key_file": own.key}


def _create_cluster(quarters: Quarters, password: str) -> None:
    word = quarters.directory / "word"
    word.write_text(password)
    _give(word, quarters)
    data = quarters.directory / "data"
    options = ["--pgdata", str(data), "--username", DATABASE, "--auth", "scram-sha-256", "--pwfile", str(word)]
    _run(quarters, "initdb", [*options, "--encoding", "UTF8", "--locale", "C", "--no-sync"])
    hba = data / "pg_hba.conf"
    hba.write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
    _give(hba, quarters)


def _prepared(quarters: Quarters, made: TlsPostgres) -> bool:
    """Whether it takes connections; then it has its database and its roles."""
    script = quarters.directory / "roles.sql"
    shutil.copy(roles.POSTGRES_SCRIPT, script)
    _give(script, quarters)
    address = ["--host", LOOPBACK, "--port", str(made.port), "--username", DATABASE, "--no-password"]
    environment = {"PGPASSWORD": made.passwords[DATABASE], "PGSSLMODE": "require", **roles.as_variables(made.passwords)}
    try:
        _run(quarters, "psql", [*address, "--quiet", "--no-psqlrc", "--file", str(script), "postgres"], environment)
        _run(quarters, "createdb", [*address, DATABASE], environment)
    except subprocess.CalledProcessError:
        return False
    return True


def _run(quarters: Quarters, program: str, options: list[str], environment: dict[str, str] | None = None) -> None:
    subprocess.run(
        quarters.command(program, *options),
        check=True,
        capture_output=True,
        timeout=SECONDS,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", **(environment or {})},
        user=quarters.account.uid if quarters.account else None,
        group=quarters.account.gid if quarters.account else None,
    )


def _hand_over(file: Path, quarters: Quarters) -> Path:
    copy = quarters.directory / file.name
    shutil.copy(file, copy)
    _give(copy, quarters)
    return copy


def _give(file: Path, quarters: Quarters) -> None:
    file.chmod(0o600)
    if quarters.account is not None:
        shutil.chown(file, quarters.account.uid, quarters.account.gid)
