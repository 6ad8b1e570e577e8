"""Chromium of the system, and windows of it in which a user is logged in."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.console.running_console import RunningConsole
from tests.support.eventually import PATIENCE

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
# As root and without a network: no sandbox, and nothing that asks for its maker's servers.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@contextmanager
def running_browser() -> Iterator[Browser]:
    """It holds the event loop of this thread until the block ends. Needs CHROMIUM."""
    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


def open_page(browser: Browser, console: RunningConsole, user: str, **options: Any) -> tuple[Page, list[str]]:
    """Open a window of its own, logged in. Return its page, and what the browser complains of while it is open."""
    given = {"viewport": {"width": 1360, "height": 900}, "timezone_id": "Europe/Berlin", "locale": "en-GB", **options}
    context = browser.new_context(base_url=console.url, **given)
    context.set_default_timeout(PATIENCE * 1000)
    name, _, value = console.session_of(user).partition("=")
    context.add_cookies([{"name": name, "value": value, "url": console.url}])
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.extend([message.text] * (message.type in {"error", "warning"})))
    page.goto("/")
    return page, complaints
