"""Every program on the client's page runs as it stands, and prints what the page says."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.application import an_application
from tests.support.client_program import Installed
from tests.support.eventually import PATIENCE
from tests.support.installed_packages import CLIENT
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site, put_topology, remove_topology

EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```(\n\n```text\n(?P<output>.*?)```)?", re.DOTALL)


def examples() -> list[tuple[str, list[str]]]:
    page = (CLIENT / "README.md").read_text(encoding="utf-8")
    found = [(each["code"], (each["output"] or "").splitlines()) for each in EXAMPLE.finditer(page)]
    assert len(found) == page.count("```python") >= 8
    return found


@pytest.mark.parametrize(("code", "output"), examples())
async def test_an_example_runs_as_it_stands(
    code: str,
    output: list[str],
    installed: Installed,
    python_with_asyncpg: Path,
    site: Site,
) -> None:
    file = installed.directory / "example.py"
    file.write_text(code)
    plain = replace(site, prefix="")
    if "asyncpg" in code:
        installed = replace(installed, python=python_with_asyncpg).given(DATABASE_URL=site.database_url)
    await put_topology(plain)
    try:
        async with running_consumer(plain), running_producer(plain), installed.running(file) as program:
            if "run()" not in code:
                await asyncio.wait_for(program.process.wait(), PATIENCE)
                assert program.process.returncode == 0, program.output
            await program.says(*output)
    finally:
        async with an_application(plain, listen_to=None) as app:
            for queue in re.findall(r'queue="([a-z.-]+)"', code):
                await app.channel.queue_delete(queue)
                await app.channel.queue_delete(f"{queue}.failed")
                await app.channel.exchange_delete(f"{queue}.failed")
        await remove_topology(plain)
