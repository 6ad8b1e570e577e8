"""`python -m tools.platforms` runs Duebell on releases of Debian, and prints a table of how they did."""

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from stack.directory import run_directory
from stack.errors import StackError
from stack.up import stop_on_signals
from tools.platforms.releases import POOLER_SINCE, Release, Step, choose, steps
from tools.platforms.result_table import Row, outcome, table, upstream_version
from tools.platforms.system import System, mirror

ROOT = Path(__file__).parents[2]
# What is tracked, and what is new and not ignored.
LIST_FILES = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
PACKAGES_WITH_VERSIONS = {"RabbitMQ": "rabbitmq-server", "Postgres": "postgresql-{}"}


def main() -> int:
    stop_on_signals()
    parser = argparse.ArgumentParser(prog="make platforms")
    parser.add_argument("--only", default="", help="names of releases, with spaces between")
    parser.add_argument("--tests", default="", help="names of directories in tests/, pooler, or none; all without")
    given = parser.parse_args()
    try:
        releases = choose(given.only.split())
        chosen = list(steps(given.tests.split(), _directories()))
    except ValueError as mistake:
        parser.error(str(mistake))
    if os.geteuid() != 0:
        sys.exit("make platforms: mounting needs root")
    rows: list[Row] = []
    try:
        with run_directory("platforms") as directory:
            for release in releases:
                rows.append(Row(release.title))
                _run(release, chosen, System(release.name, directory, _tell), rows[-1])
    except StackError as problem:
        _tell(str(problem))
        return 1
    except KeyboardInterrupt:
        _tell("stopped; nothing is left running or mounted")
        return 130
    finally:
        sys.stdout.write(
            f"\n{datetime.now(UTC):%Y-%m-%d}\n\n{table(rows)}\n\nThe logs are in .stack/platforms*/logs.\n"
        )
    return 0 if all(row.passed for row in rows) else 1


def _run(release: Release, chosen: Sequence[Step], system: System, row: Row) -> None:
    began = time.monotonic()
    system.make_base()
    # Listed only now: making the base takes minutes, in which files may come and go.
    system.put(_files(), ROOT)
    # Some tests ask git which files there are.
    system.run("git", ("sh", "-c", "git init -q && git add -A"), {})
    for step in chosen:
        environment = _environment(release, step, system, row)
        if environment is None:
            row.passed, row.outcomes[step.column] = False, "no PgBouncer"
            continue
        _tell(f"{release.title}: {shlex.join(step.command)}{' behind PgBouncer' * step.behind_pooler}")
        step_began = time.monotonic()
        status, log = system.run(step.column, step.command, environment)
        row.passed &= status == 0
        row.outcomes[step.column] = outcome(status, log.read_text(errors="replace"), time.monotonic() - step_began)
        _tell(f"{release.title}: {step.column}: {row.outcomes[step.column]}")
    _read_versions(release, system, row)
    row.seconds = time.monotonic() - began


def _environment(release: Release, step: Step, system: System, row: Row) -> dict[str, str] | None:
    environment: dict[str, str] = {}
    if release.postgres is not None and step.column != "make demo":
        environment["POSTGRES_PROGRAMS"] = f"/usr/lib/postgresql/{release.postgres}/bin"
    if step.behind_pooler:
        source = [release.pooler_of, mirror()] if release.pooler_of else []
        if release.pooler_of:
            _tell(f"{release.title}: its PgBouncer is older than {POOLER_SINCE}; that of {release.pooler_of} is used")
        status, log = system.run("install PgBouncer", ("sh", "tools/platforms/pgbouncer.sh", *source), {})
        if status != 0:
            return None
        program = log.read_text().splitlines()[-1]
        row.versions["PgBouncer"] = system.read((program, "--version")).splitlines()[0].removeprefix("PgBouncer ")
        environment |= {"PGBOUNCER": program, "TEST_SERVICES": "pooler"}
    return environment


def _read_versions(release: Release, system: System, row: Row) -> None:
    for name, package in PACKAGES_WITH_VERSIONS.items():
        found = system.read(("dpkg-query", "--show", "--showformat", "${Version}", package.format(release.postgres)))
        row.versions[name] = upstream_version(found) if found else "-"
    if row.versions["Postgres"] == "-":
        programs = "from stack.unprivileged import installed; print(installed() / 'bin/postgres')"
        server = system.read((".venv/bin/python", "-c", programs))
        row.versions["Postgres"] = system.read((server, "--version")).rpartition(" ")[2]
    row.versions["Python"] = system.read((".venv/bin/python", "--version")).removeprefix("Python ")


def _files() -> list[Path]:
    listed = subprocess.run(LIST_FILES, cwd=ROOT, check=True, capture_output=True, timeout=60).stdout.decode()
    return [Path(file) for file in listed.split("\0") if file and (ROOT / file).is_file()]


def _directories() -> list[str]:
    return sorted(path.parent.name for path in (ROOT / "tests").glob("*/__init__.py"))


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
