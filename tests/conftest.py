"""Fixtures for everything that needs real stores. Unit tests use none of them, and start nothing."""

from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from stack.directory import run_directory
from tests.support.application import Application, an_application
from tests.support.stores import Site, Stores, make_template_now, new_site, running_stores

# The longest first: two files run at a time, and nobody should wait for one of these at the end.
FIRST = ("tests/chaos/", "tests/simulation/", "tests/acceptance/test_shutdown.py", "tests/acceptance/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        return next((place for place, path in enumerate(FIRST) if item.nodeid.startswith(path)), len(FIRST))

    items.sort(key=place)


@pytest.fixture(scope="session")
def stores() -> Iterator[Stores]:
    with run_directory("test") as directory, running_stores(directory) as started:
        make_template_now(started)
        yield started


@pytest.fixture
async def site(stores: Stores) -> AsyncIterator[Site]:
    async with new_site(stores) as made:
        yield made


@pytest.fixture
async def app(site: Site) -> AsyncIterator[Application]:
    """An application that hears every due event."""
    async with an_application(site) as application:
        yield application


@pytest.fixture
async def database(site: Site) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(site.database_url, timeout=10)
    yield connection
    await connection.close(timeout=5)
