"""Puts the peers into a directory of their own, once: none of them is a dependency of this project."""

import asyncio
import shutil
import sys
from pathlib import Path

from stack.directory import STACK

DIRECTORY = STACK / "peers"
PYTHON = DIRECTORY / "venv" / "bin" / "python"
FROM_PYPI = (
    "pgqueuer==1.*",
    "procrastinate==3.*",
    "apscheduler==3.*",
    "sqlalchemy==2.*",
    "psycopg2-binary==2.*",
    "psycopg[binary,pool]==3.*",
    "asyncpg==0.32.*",
    "aio-pika==10.*",
    "uvloop==0.23.*",
)
# pg-boss 12 needs a newer Node than many a machine has, so Node comes along. What came after 12.35 asks for a version
# of rrule-temporal that not every registry has.
FROM_NPM = ("node@22", "pg-boss@12.35", "graphile-worker@0.17", "amqplib@2", "pg@8")
NODE = DIRECTORY / "node_modules" / "node" / "bin" / "node"
PATIENCE = 600.0


class CannotInstall(Exception):
    """A peer cannot be installed, for lack of a network or a registry. The others can still be measured."""


async def install_python_peers() -> None:
    if not PYTHON.exists():
        await _run(sys.executable, "-m", "venv", str(DIRECTORY / "venv"))
    if not (DIRECTORY / "venv" / "complete").exists():
        await _run(str(PYTHON), "-m", "pip", "install", "--quiet", *FROM_PYPI)
        (DIRECTORY / "venv" / "complete").touch()


async def install_node_peers() -> None:
    if shutil.which("npm") is None:
        raise CannotInstall("npm is not installed")
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    if not NODE.exists():
        await _run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(DIRECTORY), *FROM_NPM)


async def _run(*command: str | Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise CannotInstall(f"{' '.join(map(str, command[:4]))} …: {out.decode()[-500:]}")
