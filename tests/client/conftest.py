"""The client, installed alone, against real services."""

from pathlib import Path

import pytest

from stack.roles import APPLICATION
from tests.support.client_program import Installed
from tests.support.installed_packages import client_python
from tests.support.stores import Site, Stores


@pytest.fixture(scope="session")
def python() -> Path:
    return client_python()


@pytest.fixture(scope="session")
def python_with_asyncpg() -> Path:
    return client_python("requirements-postgres.lock")


@pytest.fixture
def installed(python: Path, stores: Stores, site: Site, tmp_path: Path) -> Installed:
    """Programs of an application, with an application's rights."""
    amqp_url = stores.rabbitmq.url_of(APPLICATION) if stores.rabbitmq else site.amqp_url
    return Installed(python, {"AMQP_URL": amqp_url, "AMQP_PREFIX": site.prefix}, tmp_path)
