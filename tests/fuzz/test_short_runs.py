"""A short run of each atheris target: it finds nothing. `make fuzz` runs them longer."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.services import ROOT


# Beyond the seeds, of which there are some 2,600 and some 600.
@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris, the fuzzer, is not installed")
@pytest.mark.parametrize(("target", "runs"), [("commands", 4_000), ("rules", 1_500)])
def test_a_short_run_of_the_fuzzer_finds_nothing(target: str, runs: int, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", f"tests.fuzz.{target}", f"-runs={runs}", "-seed=1"],
        cwd=ROOT,
        env={**os.environ, "FUZZ_DIRECTORY": str(tmp_path / "inputs")},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    [done] = re.findall(r"Done (\d+) runs", run.stderr)
    assert int(done) >= runs  # it is more if there are more seeds
