"""One console, one stack and one browser for all tests of this directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.console.browsers import CHROMIUM, open_page, running_browser
from tests.console.running_console import OPERATOR, RunningConsole, running_console
from tests.support.stores import Stores


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker runs all of them."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.xdist_group("console"))


@pytest.fixture(scope="session")
def console(shared_stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningConsole]:
    with running_console(shared_stores, tmp_path_factory.mktemp("console")) as running:
        yield running


@pytest.fixture(scope="module")
def browser(console: RunningConsole) -> Iterator[Browser]:
    """Only while tests of one module run: it holds the event loop of this thread, which other tests need."""
    assert console.process.is_running
    if CHROMIUM is None:
        pytest.skip("the pages in a browser: Chromium is not installed (make extras installs it)")
    with running_browser() as started:
        yield started


@pytest.fixture
def operator(browser: Browser, console: RunningConsole) -> Iterator[Page]:
    """The page of an operator in Berlin. What the browser complains of fails the test."""
    page, complaints = open_page(browser, console, OPERATOR)
    yield page
    page.context.close()
    assert complaints == []
