"""What `make platforms` runs, and the table that it prints."""

import pytest

from tools.platforms.releases import BEHIND_THE_POOLER, RELEASES, choose, steps
from tools.platforms.result_table import Row, outcome, table, upstream_version

DIRECTORIES = ["integration", "unit"]
LOG = """
FAILED tests/unit/test_x.py::test_y
=========== 3 failed, 2137 passed, 14 skipped, 2 errors in 660.12s (0:11:00) ===========
"""


def test_all_releases_are_run_unless_some_are_named() -> None:
    assert choose([]) == list(RELEASES)
    assert [release.name for release in choose(["testing", "bookworm"])] == ["bookworm", "testing"]
    with pytest.raises(ValueError, match="ONLY: there is no 'potato'"):
        choose(["potato"])


def test_the_readmes_two_commands_are_run_and_then_the_tests_behind_the_pooler() -> None:
    demo, everything, behind = steps([], DIRECTORIES)
    assert (demo.command, everything.command) == (("make", "demo"), ("make", "test"))
    assert behind.behind_pooler
    assert behind.command == ("make", "test", f"ARGS={' '.join(BEHIND_THE_POOLER)}")


def test_a_part_of_the_tests_can_be_chosen() -> None:
    assert [step.column for step in steps(["none"], DIRECTORIES)] == ["make demo"]
    assert [step.column for step in steps(["pooler"], DIRECTORIES)] == ["make demo", "behind PgBouncer"]
    _, tests = steps(["unit", "integration"], DIRECTORIES)
    assert tests.command == ("make", "test", "ARGS=tests/unit tests/integration")
    with pytest.raises(ValueError, match="TESTS: there is no 'units'"):
        list(steps(["units"], DIRECTORIES))


@pytest.mark.parametrize(
    ("status", "log", "told"),
    [
        (0, "All true.", "ok; 1.5 min"),
        (2, "make: *** [Makefile:19: setup] Error 1", "failed (2); 1.5 min"),
        (1, LOG, "3 failed, 2 errors, 2137 passed, 14 skipped; 1.5 min"),
        (0, "==== 25 passed in 3.10s ====", "25 passed; 1.5 min"),
        (2, "==== 25 passed in 3.10s ====", "25 passed, but ended with 2; 1.5 min"),
    ],
)
def test_the_outcome_of_a_step_has_the_counts_of_its_tests(status: int, log: str, told: str) -> None:
    assert outcome(status, log, 90.0) == told


@pytest.mark.parametrize(
    ("debian", "version"),
    [
        ("4.0.5-7+b1", "4.0.5"),
        ("1:17.6-0+deb13u1", "17.6"),
        ("3.10.8-1.1+deb12u1", "3.10.8"),
        ("18~rc1-1", "18"),
        ("5", "5"),
    ],
)
def test_a_version_is_told_as_its_authors_call_it(debian: str, version: str) -> None:
    assert upstream_version(debian) == version


def test_a_release_that_was_stopped_early_has_a_row_too() -> None:
    rows = [Row("Debian 12", {"RabbitMQ": "3.10.8"}, {"make demo": "ok; 1.0 min"}, seconds=60), Row("Debian 13")]
    header, line, *told = table(rows).splitlines()
    assert len({text.count("|") for text in (header, line, *told)}) == 1
    assert told[0] == "| Debian 12 | 3.10.8 | - | - | - | ok; 1.0 min | - | - | 1.0 min |"
