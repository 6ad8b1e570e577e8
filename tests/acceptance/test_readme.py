"""What the README tells newcomers is true."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from stack.roles import APPLICATION
from tests.support.application import an_application
from tests.support.client_program import a_program
from tests.support.eventually import PATIENCE
from tests.support.installed_packages import client_python
from tests.support.services import ROOT, service_process
from tests.support.stores import Site, Stores, put_topology, remove_topology

README = (ROOT / "README.md").read_text()


def settings_of(package: str) -> set[str]:
    """Variables that a service reads."""
    module = __import__(f"{package}.settings", fromlist=["settings"])
    [kind] = [value for name, value in vars(module).items() if name == f"{package.title()}Settings"]
    return {name.upper() for name in kind.model_fields}


@pytest.mark.parametrize(("number", "queue"), [(0, "my-app.reminders"), (1, "my-app.plain")])
async def test_an_example_for_applications_runs_as_it_stands(
    number: int, queue: str, stores: Stores, site: Site, tmp_path: Path
) -> None:
    """With the client, and with aio-pika alone; either in an environment that has nothing else."""
    examples = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(examples) == 2
    assert queue in examples[number]
    file = tmp_path / "your_file.py"
    file.write_text(examples[number])
    plain = replace(site, prefix="")
    amqp_url = stores.rabbitmq.url_of(APPLICATION) if stores.rabbitmq else site.amqp_url
    await put_topology(plain)
    try:
        with (
            service_process("consumer", plain, tmp_path),
            service_process("producer", plain, tmp_path),
        ):
            async with (
                an_application(plain, listen_to=None) as app,
                a_program([await asyncio.to_thread(client_python), file], {"AMQP_URL": amqp_url}, tmp_path) as program,
            ):
                await asyncio.wait_for(program.process.wait(), PATIENCE)
                for made in (queue, f"{queue}.failed"):
                    await app.channel.queue_delete(made)
                await app.channel.exchange_delete(f"{queue}.failed")
            assert program.process.returncode == 0, program.output
            assert "asked for invoice-42" in program.output
            assert "rang: invoice-42" in program.output
    finally:
        await remove_topology(plain)


def test_every_setting_is_in_the_table_and_nothing_else() -> None:
    in_readme = set(re.findall(r"^\| `([A-Z_]+)` \|", README, re.MULTILINE))
    assert in_readme == settings_of("consumer") | settings_of("producer")


def test_every_file_that_the_readme_links_to_is_there() -> None:
    for link in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (ROOT / link).exists(), link
