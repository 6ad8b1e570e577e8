"""`duebell …` as an operator would run it: a process, its answer, its exit status."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from typing import Any

from tests.support.services import ROOT
from tests.support.stores import Site


@dataclass(frozen=True, slots=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.status == 0, f"exit status {self.status}: {self.err}"
        return json.loads(self.out)


async def duebell(site: Site | None, *arguments: str, stdin: str = "") -> Ended:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **(site.environment if site else {})}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "cli",
        *arguments,
        cwd="/",
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate(stdin.encode())
    return Ended(process.returncode or 0, out.decode(), err.decode())
