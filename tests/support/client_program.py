"""Programs that run in an environment of their own, as an application's would: started, listened to line by line, and
ended as a test wants it.
"""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.support.eventually import SLOWEST_MACHINE


@dataclass(slots=True)
class Program:
    process: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list)

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    async def read(self) -> None:
        if self.process.stdout is None:
            raise RuntimeError("started without a pipe")
        async for line in self.process.stdout:
            self.lines.append(line.decode().rstrip("\n"))

    async def says(self, *texts: str, within: float = 60.0) -> None:
        """Wait until each of the lines is in the program's output."""
        deadline = asyncio.get_running_loop().time() + within * SLOWEST_MACHINE
        while not all(text in self.output for text in texts):
            over = asyncio.get_running_loop().time() > deadline
            assert not over, f"{texts} is not in:\n{self.output}"
            assert self.process.returncode is None or self.ended_well(texts), f"ended with:\n{self.output}"
            await asyncio.sleep(0.02)

    def ended_well(self, texts: Sequence[str]) -> bool:
        return all(text in self.output for text in texts)

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        self.process.kill()

    def reports(self) -> list[dict[str, Any]]:
        """The lines of its output that are JSON, parsed."""
        return [json.loads(line) for line in self.lines if line.startswith("{")]


@dataclass(frozen=True, slots=True)
class Installed:
    """A Python interpreter and the environment of its programs."""

    python: Path
    environment: Mapping[str, str]
    directory: Path

    def given(self, **more: str) -> "Installed":
        return replace(self, environment={**self.environment, **more})

    @asynccontextmanager
    async def running(self, *command: str | Path) -> AsyncIterator[Program]:
        """`python <command>`, outside the project's tree, so that nothing of the services can be imported."""
        async with a_program([self.python, *command], self.environment, self.directory) as program:
            yield program

    async def run(self, *command: str | Path, within: float = 60.0) -> list[dict[str, Any]]:
        """Run the program to its end, with exit status 0. Returns what it reported."""
        async with self.running(*command) as program:
            await asyncio.wait_for(program.process.wait(), within * SLOWEST_MACHINE)
        assert program.process.returncode == 0, program.output
        return program.reports()


@asynccontextmanager
async def a_program(
    command: Sequence[str | Path], environment: Mapping[str, str], directory: Path
) -> AsyncIterator[Program]:
    inherited = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=directory,
        env={**inherited, "PYTHONUNBUFFERED": "1", **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    program = Program(process)
    reading = asyncio.create_task(program.read())
    try:
        yield program
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading
