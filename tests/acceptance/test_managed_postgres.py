"""A Postgres that a provider runs: its user may make roles and databases, and is no superuser."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from stack.postgres import Postgres
from stack.roles import POSTGRES_SCRIPT, READER, as_variables, new_passwords, role_of
from stack.services import SERVICES
from stack.unprivileged import find_programs
from tests.support.eventually import PATIENCE
from tests.support.services import ROOT
from tests.support.stores import store_directory

MANAGER = "manager"
ROLES = [*map(role_of, SERVICES), READER]


@dataclass(frozen=True, slots=True)
class Managed:
    url: str
    passwords: dict[str, str]

    def url_of(self, role: str) -> str:
        return self.url.replace(f"//{MANAGER}:secret@", f"//{role}:{self.passwords[role]}@")


@pytest.fixture
async def managed() -> AsyncIterator[Managed]:
    with store_directory("managed") as directory, Postgres(directory, fsync=False) as postgres:
        superuser = await asyncpg.connect(postgres.url, timeout=PATIENCE)
        for role in ROLES:
            await superuser.execute(f"drop role if exists {role}")
        await superuser.execute(f"create role {MANAGER} login createrole createdb password 'secret'")
        await superuser.execute(f"create database managed owner {MANAGER}")
        await superuser.close(timeout=5)
        address = urlsplit(postgres.url)
        url = urlunsplit(
            address._replace(netloc=f"{MANAGER}:secret@{address.hostname}:{address.port}", path="/managed")
        )
        yield Managed(url, new_passwords())


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


async def test_roles_and_schema_need_no_superuser(managed: Managed) -> None:
    script = ("--no-psqlrc", "--quiet", "--file", str(POSTGRES_SCRIPT), managed.url)
    psql = str(Path(find_programs()) / "psql")
    for _ in range(2):  # as after a change of passwords
        assert run(psql, *script, **as_variables(managed.passwords)) == ""
    run(sys.executable, "-m", "shared.migrate", DATABASE_URL=managed.url)
    for role in ROLES:
        connection = await asyncpg.connect(managed.url_of(role), timeout=PATIENCE)
        assert await connection.fetchval("select count(*) from duebell_migrations") > 0
        assert await connection.fetchval("show statement_timeout") == "30s"
        attributes = "rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls"
        assert not await connection.fetchval(f"select {attributes} from pg_roles where rolname = current_user")
        await connection.close(timeout=5)
