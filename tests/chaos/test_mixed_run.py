"""The short run: every service killed at any moment and at each named point, while the stores and the network have
their troubles, too. It runs as a process of its own, as `make chaos` does, and prints what a person needs if it fails.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared.runtime.fault_points import Point
from stack.services import PROJECT
from tests.chaos.faults import SERVICES

SEED = 20301
# It takes a minute and a half on a machine that has nothing else to do.
MAX_RUN_SECONDS = 1200


@pytest.mark.timeout(MAX_RUN_SECONDS + 60)
def test_every_promise_is_kept_while_everything_is_struck(tmp_path: Path) -> None:
    if os.environ.get("TEST_SERVICES", "stack") != "stack":
        pytest.skip("the tests did not start the stores")
    table = tmp_path / "table.md"
    command = [sys.executable, "-m", "tests.chaos", "--mixed", "--seed", str(SEED), "--table", str(table)]
    told = subprocess.run(
        command,
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=MAX_RUN_SECONDS,
        check=False,
    )
    print(told.stdout)  # noqa: T201 - shown by pytest if it fails
    assert told.returncode == 0, told.stdout[-3000:]
    counts = _counts(table.read_text())
    for service in SERVICES:
        at_points = [counts[f"SIGKILL of {point}"] for point in Point if point.startswith(service)]
        assert counts[f"{service}: SIGKILL"] + sum(at_points) >= 7
        assert all(at_points), "every point was reached"


def _counts(table: str) -> dict[str, int]:
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| ")]
    return {fault.strip(): int(count) for fault, count in rows[2:]}
