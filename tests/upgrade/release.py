"""The services of release 0.1.0, unpacked from an archive beside this file: a clone may be without the history that has
them. The archive was made by

    git archive --format=tar 48c9e93 consumer producer delivery shared | xz -9e > tests/upgrade/0.1.0.tar.xz

48c9e93 is the last commit before everything that the changelog lists after 0.1.0.
"""

import asyncio
import os
import sys
import tarfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.eventually import PATIENCE
from tests.support.stores import Site

ARCHIVE = Path(__file__).parent / "0.1.0.tar.xz"
NEWEST_MIGRATION = 5


def unpack(directory: Path) -> Path:
    """Unpack the release, and return the directory that its services run in."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(directory, filter="data")
    return directory


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a deployment that is under way."""

    process: Process

    async def next_line(self) -> str:
        assert self.process.stderr
        async with asyncio.timeout(PATIENCE):
            return (await self.process.stderr.readline()).decode()

    async def ends(self) -> str:
        """Wait for its end. Returns what else it said."""
        async with asyncio.timeout(PATIENCE):
            _, said = await self.process.communicate()
        assert self.process.returncode == 0, said.decode()
        return said.decode()


@asynccontextmanager
async def step(module: str, site: Site, code: Path) -> AsyncIterator[Step]:
    """Start `python -m module` of a release as the operator."""
    environment = {**os.environ, **site.environment}
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", module, cwd=code, env=environment, stderr=PIPE)
    try:
        yield Step(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def run_step(module: str, site: Site, code: Path) -> str:
    async with step(module, site, code) as started:
        return await started.ends()
