"""The floor of the coverage holds, and rises with what is measured."""

import tomllib

import pytest

from tests.support.services import ROOT
from tools.coverage_floor import MAX_POINTS_ABOVE, judge

COVERAGE = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]


def test_the_services_and_what_they_share_are_measured_branch_by_branch() -> None:
    assert COVERAGE["run"]["branch"]
    assert set(COVERAGE["run"]["source"]) == {"consumer", "delivery", "producer", "shared"}
    assert COVERAGE["report"]["fail_under"] > 80


@pytest.mark.parametrize(
    ("covered", "word"),
    [(89.9, "below"), (90.0, None), (90.0 + MAX_POINTS_ABOVE, None), (90.1 + MAX_POINTS_ABOVE, "raise")],
)
def test_too_little_fails_and_much_more_asks_for_a_higher_floor(covered: float, word: str | None) -> None:
    problem = judge(covered, 90)
    assert (problem is None) if word is None else (problem is not None and word in problem)
