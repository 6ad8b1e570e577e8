"""`python -m tools.coverage_floor` prints what the last measured run covered. It fails if that is below `fail_under` of
pyproject.toml, or so far above that the floor can be raised.
"""

import io
import sys

import coverage

MAX_POINTS_ABOVE = 1.5


def judge(covered: float, floor: float) -> str | None:
    """Return what is to be done about the floor, if anything is."""
    if covered < floor:
        return f"coverage is {covered:.1f} %, below its floor of {floor:g} %: test what is new"
    if covered > floor + MAX_POINTS_ABOVE:
        return f"coverage is {covered:.1f} %: raise fail_under in pyproject.toml from {floor:g} to {covered - 0.5:.1f}"
    return None


def main() -> int:
    measured = coverage.Coverage()
    measured.load()
    covered = measured.report(file=io.StringIO())
    floor = float(str(measured.get_option("report:fail_under")))
    problem = judge(covered, floor)
    sys.stdout.write(f"{problem or f'coverage: {covered:.1f} % of lines and branches, {floor:g} % are required'}\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
