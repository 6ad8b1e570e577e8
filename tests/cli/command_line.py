"""`duebell …` as an operator would run it: its answer, and its exit status."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.eventually import PATIENCE
from tests.support.measured import measured_environment
from tests.support.services import ROOT
from tests.support.stores import Site

PIPE = asyncio.subprocess.PIPE


@dataclass(frozen=True, slots=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.status == 0, f"exit status {self.status}: {self.err}"
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Operator:
    process: asyncio.subprocess.Process

    async def __call__(self, *arguments: str, stdin: str = "") -> Ended:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps({"arguments": arguments, "stdin": stdin}).encode() + b"\n")
        async with asyncio.timeout(60):
            answer = await self.process.stdout.readline()
        assert answer, "the operator's process has died"
        return Ended(**json.loads(answer))


@asynccontextmanager
async def an_operator(where: Site | Mapping[str, str] | None) -> AsyncIterator[Operator]:
    """Without a site: whose environment names no stores."""
    environment = where.environment if isinstance(where, Site) else where
    measured = {**(environment or {}), **measured_environment()}
    process = await _python("tests.cli.operator_process", environment=measured)
    try:
        yield Operator(process)
    finally:
        assert process.stdin
        process.stdin.close()
        await asyncio.wait_for(process.wait(), PATIENCE)


async def duebell(*arguments: str, cwd: str = "/", **environment: str) -> Ended:
    """A process of its own, which knows no stores."""
    process = await _python("cli", *arguments, environment=environment, cwd=cwd)
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    return Ended(process.returncode or 0, out.decode(), err.decode())


async def _python(
    module: str, *arguments: str, environment: Mapping[str, str] | None = None, cwd: str = "/"
) -> asyncio.subprocess.Process:
    base = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments,
        cwd=cwd, env={**base, **(environment or {})}, stdin=PIPE, stdout=PIPE, stderr=PIPE if module == "cli" else None,
        limit=2**22,
    )  # fmt: skip
