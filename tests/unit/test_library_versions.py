"""A service refuses to start with libraries in versions that were not tested."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared.runtime.library_versions import find_untested_version
from tests.support.services import ROOT

TESTED = {"aio-pika": "10.2.0", "aiohttp": "3.14.0", "aiormq": "7.2.4", "pamqp": "4.0.1", "yarl": "1.25.0"}


@pytest.mark.parametrize("version", ["7.2.4", "7.2.4.post1", "7.2.99"])
def test_tested_versions_are_no_problem(version: str) -> None:
    assert find_untested_version({**TESTED, "aiormq": version}.__getitem__) is None


@pytest.mark.parametrize("version", ["7.2.3", "7.2", "7.3", "7.3.0rc1", "8.0", "6.9.99", "unknown"])
def test_any_other_version_is_named_with_those_that_were_tested(version: str) -> None:
    problem = find_untested_version({**TESTED, "aiormq": version}.__getitem__)
    assert problem == f"aiormq {version} is installed, and Duebell was tested with aiormq>=7.2.4,<7.3: install one"


@pytest.mark.parametrize(("library", "version"), [("aio-pika", "11.0"), ("aiohttp", "4.0.0a1"), ("yarl", "1.24.9")])
def test_libraries_whose_details_matter_are_checked(library: str, version: str) -> None:
    problem = find_untested_version({**TESTED, library: version}.__getitem__)
    assert problem is not None
    assert problem.startswith(f"{library} {version} is installed, and Duebell was tested with {library}>=")


def test_what_is_installed_here_was_tested() -> None:
    assert find_untested_version() is None


@pytest.mark.parametrize("service", ["consumer", "producer", "delivery"])
def test_a_service_with_an_untested_version_logs_one_line_and_does_not_start(service: str, tmp_path: Path) -> None:
    """Python finds a library of another version first."""
    found_first = tmp_path / "pamqp-4.1.0.dist-info"
    found_first.mkdir()
    (found_first / "METADATA").write_text("Metadata-Version: 2.1\nName: pamqp\nVersion: 4.1.0\n")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{tmp_path}:{ROOT}",
        "DATABASE_URL": "postgresql://unknown@127.0.0.1:9/nothing",
        "AMQP_URL": "amqp://127.0.0.1:9/",
        "METRICS_PORT": "0",
    }
    ended = subprocess.run(
        [sys.executable, "-m", service],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    [line] = (ended.stdout + ended.stderr).splitlines()
    said = json.loads(line)
    assert (said["event"], said["level"]) == ("cannot_start", "error")
    assert said["problem"] == "pamqp 4.1.0 is installed, and Duebell was tested with pamqp>=4.0.1,<4.1: install one"
