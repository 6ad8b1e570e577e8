"""What the README tells newcomers is true."""

import asyncio
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

from stack.roles import APPLICATION
from tests.support.application import an_application
from tests.support.services import ROOT, service_process
from tests.support.stores import Site, Stores, put_topology, remove_topology

README = (ROOT / "README.md").read_text()


def settings_of(package: str) -> set[str]:
    """Variables that a service reads."""
    module = __import__(f"{package}.settings", fromlist=["settings"])
    [kind] = [value for name, value in vars(module).items() if name == f"{package.title()}Settings"]
    return {name.upper() for name in kind.model_fields}


async def test_the_example_for_applications_runs_as_it_stands(stores: Stores, site: Site, tmp_path: Path) -> None:
    [example] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    file = tmp_path / "your_file.py"
    file.write_text(example)
    plain = replace(site, prefix="")
    amqp_url = stores.rabbitmq.url_of(APPLICATION) if stores.rabbitmq else site.amqp_url
    await put_topology(plain)
    try:
        with (
            service_process("consumer", plain, tmp_path),
            service_process("producer", plain, tmp_path),
        ):
            async with an_application(plain, listen_to=None) as app:  # waits for nothing but the exchanges
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    str(file),
                    env={**os.environ, "AMQP_URL": amqp_url},
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                )
                output, _ = await asyncio.wait_for(process.communicate(), 60)
                await app.channel.queue_delete("my-app.reminders")
            said = output.decode()
            assert process.returncode == 0, said
            assert "asked for invoice-42" in said
            assert "rang: invoice-42" in said
    finally:
        await remove_topology(plain)


def test_every_setting_is_in_the_table_and_nothing_else() -> None:
    in_readme = set(re.findall(r"^\| `([A-Z_]+)` \|", README, re.MULTILINE))
    assert in_readme == settings_of("consumer") | settings_of("producer")


def test_every_file_that_the_readme_links_to_is_there() -> None:
    for link in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (ROOT / link).exists(), link
