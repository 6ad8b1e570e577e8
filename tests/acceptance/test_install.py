"""docs/operations/install.md, followed on a Postgres as a provider runs it: its user may make roles and databases, and
is no superuser.
"""

import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from stack.postgres import Postgres
from stack.roles import READER, as_variables, new_passwords, role_of
from stack.services import SERVICES
from tests.documents.blocks import blocks_of
from tests.support.eventually import PATIENCE, eventually
from tests.support.operator_terminal import operator_terminal
from tests.support.stores import Site, Stores, remove_topology, store_directory

DATABASE_ROLES, BROKER_USERS, PREPARE, START, LOOK = [
    block.text for block in blocks_of("docs/operations/install.md") if block.language == "sh"
]
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


@pytest.fixture
async def site(managed: Managed, stores: Stores) -> AsyncIterator[Site]:
    made = Site(managed.url, stores.amqp_url, f"install_{secrets.token_hex(4)}.")
    yield made
    await remove_topology(made)


async def test_the_page_about_installing_needs_no_superuser(managed: Managed, site: Site, tmp_path: Path) -> None:
    environment = {
        **site.environment,
        **as_variables(managed.passwords),
        "METRICS_PORT": "0",
        "CONSOLE_PORT": "0",
        "CONSOLE_OPEN_ON_LOOPBACK": "true",
    }
    with operator_terminal(tmp_path / "checkout", environment) as terminal:
        for _ in range(2):  # as after a change of passwords
            terminal.run(DATABASE_ROLES)
        terminal.run(BROKER_USERS)
        terminal.run(PREPARE)
        terminal.shows("exchanges and queues are declared")
        for role in ROLES:
            await _has_what_it_needs_and_no_more(managed.url_of(role))
        terminal.run(START)
        database = await asyncpg.connect(managed.url, timeout=PATIENCE)
        await eventually(lambda: _all_run(database), within=60.0)
        await database.close(timeout=5)
        terminal.run(LOOK)
        terminal.shows('"services": {\n"consumer": 1\n"producer": 1\n"delivery": 1')
        users = json.loads((tmp_path / "checkout" / "duebell-users.json").read_text())["users"]
    assert {user["name"]: user["password"] for user in users} == managed.passwords


async def _has_what_it_needs_and_no_more(url: str) -> None:
    connection = await asyncpg.connect(url, timeout=PATIENCE)
    assert await connection.fetchval("select count(*) from duebell_migrations") > 0
    assert await connection.fetchval("show statement_timeout") == "30s"
    attributes = "rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls"
    assert not await connection.fetchval(f"select {attributes} from pg_roles where rolname = current_user")
    await connection.close(timeout=5)


async def _all_run(database: Any) -> bool:
    running = {row["service"] for row in await database.fetch("select service from service_instances")}
    assert running == set(SERVICES)
    return True
