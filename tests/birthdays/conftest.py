"""The application's home on a test's own site."""

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from examples.birthdays.provision import broker_definitions
from tests.birthdays.application import Home, Logins, a_home
from tests.support.stores import PREFIX, Site, Stores


@pytest.fixture(scope="session")
def logins(shared_stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Logins:
    password = secrets.token_hex(16)
    if shared_stores.rabbitmq is None:
        return Logins(password, on_broker=False)
    file: Path = tmp_path_factory.mktemp("broker") / "definitions.json"
    file.write_text(broker_definitions(password, PREFIX))
    shared_stores.rabbitmq.ctl("import_definitions", str(file))
    return Logins(password, on_broker=True)


@pytest.fixture
async def home(site: Site, logins: Logins) -> AsyncIterator[Home]:
    async with a_home(site, logins) as made:
        yield made
