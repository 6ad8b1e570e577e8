"""One console, one stack and one browser for all tests of this directory."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.console.running_console import OPERATOR, RunningConsole, running_console
from tests.support.stores import Stores

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
# As root and without a network: no sandbox, and nothing that asks for its maker's servers.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


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
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def operator(browser: Browser, console: RunningConsole) -> Iterator[Page]:
    """The page of an operator in Berlin. What the browser complains of fails the test."""
    page, complaints = open_page(browser, console, OPERATOR)
    yield page
    page.context.close()
    assert complaints == []


def open_page(browser: Browser, console: RunningConsole, user: str, **options: Any) -> tuple[Page, list[str]]:
    """Open a window of its own, logged in. Return its page, and what the browser complains of while it is open."""
    given = {"viewport": {"width": 1360, "height": 900}, "timezone_id": "Europe/Berlin", "locale": "en-GB", **options}
    context = browser.new_context(base_url=console.url, **given)
    name, _, value = console.session_of(user).partition("=")
    context.add_cookies([{"name": name, "value": value, "url": console.url}])
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.extend([message.text] * (message.type in {"error", "warning"})))
    page.goto("/")
    return page, complaints
