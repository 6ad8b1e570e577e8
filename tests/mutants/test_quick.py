"""A few of the mutants, with every run of the suite: that the quick ones are caught, and that a run is judged as it
should be. `make mutants` runs all of them.
"""

from pathlib import Path

import pytest

from tests.mutants.checkout import a_copy
from tests.mutants.list import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.pytest_run import Result, judge, run_tests
from tests.mutants.runs import run_each

A_FEW = ("refusal-counts-as-ring", "breaker-never-opens", "key-without-separator")

# A test that every mutant below leaves as it is.
TEST = "tests/unit/test_idempotency.py::test_the_key_is_the_same_for_the_same_instant_in_another_zone"
FILE = "shared/contract/fields.py"


def a_mutant(name: str, before: str, after: str) -> Mutant:
    return Mutant(name=name, harm="None.", file=FILE, before=before, after=after, tests=(TEST,))


HARMLESS = a_mutant("harmless", "hexdigest()[:32]", "hexdigest()[:31]")
CANNOT_BE_IMPORTED = a_mutant("cannot be imported", "from hashlib import sha256", "from hashlib import sha255")
MOVED = a_mutant("moved", "a text that is not there", "")


async def test_quick_mutants_are_caught_and_a_change_without_effect_is_not() -> None:
    few = [mutant for mutant in MUTANTS if mutant.name in A_FEW]
    assert all(mutant.is_quick for mutant in few)
    ended = [one async for one in run_each([*few, HARMLESS, CANNOT_BE_IMPORTED, MOVED], workers=2)]
    assert {one.mutant.name: one.run.result for one in ended} == {
        **dict.fromkeys(A_FEW, Result.CAUGHT),
        "harmless": Result.NOT_CAUGHT,
        "cannot be imported": Result.BROKEN,
        "moved": Result.MOVED,
    }


async def test_a_run_that_takes_too_long_is_ended() -> None:
    with a_copy() as directory:
        assert (await run_tests(directory, (TEST,), deadline=0.0)).result is Result.TOO_LONG


@pytest.mark.parametrize(
    ("inside", "result"),
    [
        ('<failure message="assert 1 == 2"/>', Result.CAUGHT),
        ('<failure message="TimeoutError"/>', Result.CAUGHT),
        ('<failure message="ImportError: cannot import name"/>', Result.BROKEN),
        ('<failure message="NameError: name"/>', Result.BROKEN),
        ('<error message="failed on setup with"/>', Result.BROKEN),
        ("", Result.BROKEN),
    ],
)
def test_only_the_failure_of_a_test_counts(tmp_path: Path, inside: str, result: Result) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        f'<testsuites><testsuite><testcase classname="a" name="b">{inside}</testcase></testsuite></testsuites>'
    )
    assert judge(1, report)[0] is result


@pytest.mark.parametrize("status", [2, 3, 4, 5, -2, None])
def test_a_run_that_did_not_come_to_its_tests_has_caught_nothing(tmp_path: Path, status: int | None) -> None:
    assert judge(status, tmp_path / "none.xml") == (Result.BROKEN, ())
