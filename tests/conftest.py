"""Fixtures for everything that needs real stores. Unit tests use none of them, and start nothing."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests.support.application import Application, an_application
from tests.support.eventually import PATIENCE
from tests.support.measured import MEASURES
from tests.support.spare_stores import SpareStores
from tests.support.stores import (
    Site,
    Stores,
    make_template_now,
    new_database,
    new_site,
    running_stores,
    store_directory,
)

# A busy machine makes examples slowly, and takes long for one: neither is a failure.
settings.register_profile("duebell", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("duebell")

TESTS = Path(__file__).parent
# Where `make test` measures coverage in the process of the test. Elsewhere services are processes of their own.
MEASURED = {"cli", "integration", "simulation", "unit"}
# Measuring makes a thousand examples of one property take twice as long, and what they reach others reach, too. And it
# must not count as time of what has a limit on its time.
NOT_MEASURED = {"test_bombs.py", "test_local_queue_states.py"}


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("cov_source", None):
        os.environ[MEASURES] = "1"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker runs all tests that need stores of their own: starting a pair takes long. Coverage is measured in some
    tests alone."""
    for item in items:
        if not _is_measured(item):
            item.add_marker(pytest.mark.no_cover)
        if item.get_closest_marker("own_stores"):
            item.add_marker(pytest.mark.xdist_group("own stores"))


def _is_measured(item: pytest.Item) -> bool:
    if item.path.relative_to(TESTS).parts[0] not in MEASURED or item.path.name in NOT_MEASURED:
        return False
    return not (isinstance(item, pytest.Function) and is_hypothesis_test(item.obj))


@pytest.fixture(scope="session")
def shared_stores() -> Iterator[Stores]:
    with store_directory("test") as directory, running_stores(directory) as started:
        make_template_now(started)
        yield started


@pytest.fixture(scope="session")
def spare_stores() -> Iterator[SpareStores]:
    spare = SpareStores()
    yield spare
    spare.close()


@pytest.fixture
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    """The servers that this worker's tests share; for a test marked `own_stores`, which may stop and kill them, a pair
    that other tests never see in trouble."""
    if _has_own_stores(request):
        spare: SpareStores = request.getfixturevalue("spare_stores")
        yield spare.get()
        spare.look_over()
        return
    shared: Stores = request.getfixturevalue("shared_stores")
    before = _processes(shared)
    yield shared
    assert _processes(shared) == before, "a test that restarts a server has to be marked own_stores"


def _has_own_stores(request: pytest.FixtureRequest) -> bool:
    return request.node.get_closest_marker("own_stores") is not None and os.environ.get("TEST_SERVICES") != "given"


def _processes(stores: Stores) -> list[int]:
    return [server.pid for server in (stores.postgres, stores.rabbitmq) if server is not None]


@pytest.fixture
async def site(stores: Stores, request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    async with new_site(stores, delete_queues=not _has_own_stores(request)) as made:
        yield made


@pytest.fixture
async def site_without_queues(stores: Stores) -> AsyncIterator[Site]:
    async with new_database(stores) as made:
        yield made


@pytest.fixture
def own_database(request: pytest.FixtureRequest) -> Site:
    """The site of the test, or, if it asks for none, one that has a database alone: that takes a third of the time."""
    site: Site = request.getfixturevalue("site" if "site" in request.fixturenames else "site_without_queues")
    return site


@pytest.fixture
async def app(site: Site) -> AsyncIterator[Application]:
    """An application that hears every due event."""
    async with an_application(site) as application:
        yield application


@pytest.fixture
async def database(own_database: Site) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(own_database.database_url, timeout=PATIENCE)
    yield connection
    await connection.close(timeout=5)
