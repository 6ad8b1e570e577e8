"""One run of pytest in a copy of the checkout, and what it means for a mutant: caught by a test that failed, or not."""

import asyncio
import os
import signal
import sys
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from xml.etree import ElementTree as ET

REPORT = "mutant-report.xml"
# The plugins of the suite alone: some that the environment has take longer to import than a unit test takes to run.
PLUGINS = ("-p", "pytest_asyncio.plugin", "-p", "pytest_timeout", "-p", "no:cacheprovider")
# Code that cannot be imported or does not know a name fails every test: that says nothing about this one.
NOT_ABOUT_BEHAVIOUR = ("ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "NameError")
# For pytest to stop its stores, when it has taken too long.
TIME_TO_END = 20.0


class Result(StrEnum):
    CAUGHT = "caught"
    NOT_CAUGHT = "NOT CAUGHT"
    BROKEN = "BROKEN"  # the tests did not get as far as failing
    TOO_LONG = "TOOK TOO LONG"
    MOVED = "THE CODE HAS MOVED"


@dataclass(frozen=True, slots=True)
class PytestRun:
    result: Result
    seconds: float
    failed: tuple[str, ...] = ()
    output: str = ""


async def run_tests(directory: Path, tests: tuple[str, ...], deadline: float, *, to_the_end: bool = False) -> PytestRun:
    """The tests of the copy in the directory, up to the first failure or to the end."""
    stop_early = () if to_the_end else ("-x",)
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        # Should this process be killed, pytest ends its stores.
        *("setpriv", "--pdeathsig", "INT", sys.executable, "-m", "pytest", "-q", *stop_early, *PLUGINS),
        *("--junitxml", REPORT, *tests),
        cwd=directory,
        env=_environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    reading = asyncio.ensure_future(process.communicate())
    done, _ = await asyncio.wait({reading}, timeout=deadline)
    if not done:
        process.send_signal(signal.SIGINT)
        done, _ = await asyncio.wait({reading}, timeout=TIME_TO_END)
        if not done:
            process.kill()
        await reading
        return PytestRun(Result.TOO_LONG, time.monotonic() - began)
    output, _ = reading.result()
    result, failed = judge(process.returncode, directory / REPORT)
    return PytestRun(result, time.monotonic() - began, failed, output.decode(errors="replace"))


def judge(status: int | None, report: Path) -> tuple[Result, tuple[str, ...]]:
    """What pytest's exit status and its report say, and which tests failed. Status 0 is that all passed, 1 that some
    failed or could not be set up; anything else that it could not collect them, or did not understand its arguments.
    """
    if status == 0:
        return Result.NOT_CAUGHT, ()
    if status != 1 or not report.exists():
        return Result.BROKEN, ()
    failed = tuple(
        f"{case.get('classname')}.{case.get('name')}"
        for case in ET.parse(report).iter("testcase")
        for failure in case.iter("failure")
        if not (failure.get("message") or "").startswith(NOT_ABOUT_BEHAVIOUR)
    )
    return (Result.CAUGHT if failed else Result.BROKEN), failed


def _environment() -> dict[str, str]:
    """Return the environment of this process without what pytest has put there."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
