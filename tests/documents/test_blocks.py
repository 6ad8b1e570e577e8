"""The documents' programs and commands run as they stand, page by page, on one stack, and print what the page says."""

import asyncio
import base64
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from stack.ports import free_port
from stack.roles import APPLICATION
from tests.documents.blocks import Block, blocks_of
from tests.documents.coverage import LINES_RUN_ELSEWHERE, RUN_ELSEWHERE, RUN_HERE
from tests.documents.terminal import Terminal
from tests.support.installed_packages import client_python
from tests.support.npm_project import installed_project
from tests.support.services import ROOT, service_process
from tests.support.stores import Site, Stores, new_site, put_topology, remove_topology

# One worker, one stack, and the pages in the order in which a reader meets them.
pytestmark = [pytest.mark.xdist_group("blocks"), pytest.mark.in_order]
# Readers try things again: these pages are run a second time in the same checkout.
TWICE = {"README.md", "docs/how-to/remind-me.md", "docs/how-to/cancel.md", "docs/how-to/node.md", "docs/how-to/pika.md"}
# Where a reader has exported nothing, the command line finds the stack in .stack/endpoints.json.
EXPORTS_NOTHING = {"README.md", "docs/delayed-messages.md", "examples/birthdays/README.md"}


@dataclass(frozen=True, slots=True)
class Running:
    """A stack as `make up` starts it, without prefix, and a directory that looks like a checkout beside it."""

    checkout: Path
    database_url: str
    application_url: str

    def environment(self, page: str) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        plain = {"PATH": path, "PYTHONPATH": str(ROOT / "client")}
        exported = {"AMQP_URL": self.application_url, "DATABASE_URL": self.database_url}
        return plain if page in EXPORTS_NOTHING else {**plain, **exported}


@pytest.fixture(scope="module")
def running(shared_stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("stack")
    with asyncio.Runner() as runner, ExitStack() as stack:
        lasting = new_site(shared_stores)
        site = replace(runner.run(lasting.__aenter__()), prefix="")
        stack.callback(lambda: runner.run(lasting.__aexit__(None, None, None)))
        runner.run(put_topology(site))
        # The exchanges stay: with an exchange RabbitMQ 4.3 deletes the rights on its routing keys.
        stack.callback(lambda: runner.run(remove_topology(site, exchanges=False)))
        secret, port = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}", free_port()
        here = {"WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8,::1/128"}
        settings = {
            "consumer": {**here, "WEBHOOK_SECRET_NAMES": "demo"},
            "delivery": {**here, "WEBHOOK_SECRETS": json.dumps({"demo": secret})},
            "examples.receiver": {"RECEIVER_PORT": str(port), "RECEIVER_SECRET": secret},
        }
        for name in ("consumer", "producer", "delivery", "examples.receiver"):
            stack.enter_context(service_process(name, site, directory, **settings.get(name, {})))
        endpoints = {
            "database_url": site.database_url,
            "amqp_url": site.amqp_url,
            "receiver": f"http://127.0.0.1:{port}",
            "webhook_secret": secret,
        }
        checkout = tmp_path_factory.mktemp("checkout")
        lay_out(checkout, endpoints)
        yield Running(checkout, site.database_url, application_url(shared_stores, site))


def application_url(stores: Stores, site: Site) -> str:
    """Return an address with an application's rights, if the tests have started the stores."""
    return stores.rabbitmq.url_of(APPLICATION) if stores.rabbitmq else site.amqp_url


def lay_out(checkout: Path, endpoints: dict[str, str]) -> None:
    """What a reader's checkout has, of links into this one."""
    (checkout / ".stack").mkdir()
    (checkout / ".stack/endpoints.json").write_text(json.dumps(endpoints))
    (checkout / ".stack/my-app").symlink_to(client_python("requirements-postgres.lock").parents[1])
    (checkout / ".venv").symlink_to(Path(sys.executable).parents[1])
    for name in ("duebell", "client"):
        (checkout / name).symlink_to(ROOT / name)
    (checkout / "examples").mkdir()
    for example in (ROOT / "examples").iterdir():
        (checkout / "examples" / example.name).symlink_to(example)
    (checkout / "examples/javascript").unlink()
    (checkout / "examples/javascript").symlink_to(installed_project(ROOT / "examples/javascript"))


@pytest.mark.parametrize("page", RUN_HERE)
def test_a_page_does_what_it_says(page: str, running: Running) -> None:
    for _ in range(2 if page in TWICE else 1):
        terminal = Terminal(running.checkout, running.environment(page))
        try:
            for block in blocks_of(page):
                if (page, block.language) not in RUN_ELSEWHERE:
                    follow(block, terminal, running.checkout)
        finally:
            terminal.close()
            for made in ("shop", "reminders", "manage.py"):
                remove(running.checkout / made)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def follow(block: Block, terminal: Terminal, checkout: Path) -> None:
    """As a reader does: save what names its file, run the rest, and compare."""
    match block.language:
        case "python" if block.file:
            (checkout / block.file).parent.mkdir(parents=True, exist_ok=True)
            (checkout / block.file).write_text(block.text)
        case "python":
            (checkout / "example.py").write_text(block.text)
            in_background = " &" if ".run()" in block.text else ""
            terminal.run(f"env --unset=PYTHONPATH .stack/my-app/bin/python example.py{in_background}")
        case "sh":
            lines = [line for line in block.text.splitlines() if line.strip() not in LINES_RUN_ELSEWHERE]
            terminal.run("\n".join(lines))
        case "text" if not is_a_picture(block):
            terminal.shows(block.text)


def is_a_picture(block: Block) -> bool:
    """What `make demo` and `make up` print is compared by the tests of those; the rest is drawn."""
    return any(sign in block.text for sign in ("─▶", "seen in", "Duebell is up."))
