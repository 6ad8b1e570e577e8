"""The table at the end of a run. Pure."""

from collections.abc import Sequence

from tests.mutants.runs import MutantRun

HEAD = ("mutant", "file", "result", "seconds", "the test that failed")


def table(ended: Sequence[MutantRun]) -> str:
    rows = [HEAD, *(_row(one) for one in ended)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _row(ended: MutantRun) -> tuple[str, ...]:
    mutant, run = ended.mutant, ended.run
    return mutant.name, mutant.file, run.result.value, f"{run.seconds:7.1f}", run.failed[0] if run.failed else ""
