"""`python -m tests.mutants [NAME …] [--quick]`: makes each mistake of the list in a copy of the code, one at a time,
and runs the tests that must notice it. Exit status 0 if every mutant was caught. WORKERS says how many at a time.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence

from tests.mutants.list import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.pytest_run import PytestRun, Result
from tests.mutants.runs import MutantRun, run_each, run_without_mutants
from tests.mutants.table import table

LAST_LINES = 25


def chosen(arguments: Sequence[str]) -> list[Mutant]:
    """Those whose tests need no stores come first: they are the first to be known."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="makes known mistakes in a copy")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a mutant; all if none is given")
    parser.add_argument("--quick", action="store_true", help="only those whose tests need no stores")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - {mutant.name for mutant in MUTANTS}:
        parser.error(f"there is no mutant {', '.join(sorted(unknown))}")
    return [
        mutant
        for mutant in sorted(MUTANTS, key=lambda mutant: not mutant.is_quick)
        if (not options.names or mutant.name in options.names) and (mutant.is_quick or not options.quick)
    ]


async def main(mutants: Sequence[Mutant], workers: int) -> int:
    began = time.monotonic()
    print(f"first the tests of {len(mutants)} mutants without any of them", flush=True)
    without = await run_without_mutants(mutants)
    if without.result is not Result.NOT_CAUGHT:
        print(_last_lines(without))
        print("the tests do not pass in the code as it is: nothing can be said about mutants")
        return 1
    print(f"they pass, after {without.seconds:.0f} s; now {workers} mutants at a time", flush=True)
    ended: list[MutantRun] = []
    async for one in run_each(mutants, workers):
        ended.append(one)
        place = f"{len(ended):3} of {len(mutants)}"
        print(f"{place}  {one.run.seconds:6.1f} s  {one.run.result:8}  {one.mutant.name}", flush=True)
        if one.run.result is not Result.CAUGHT:
            print(_last_lines(one.run), flush=True)
    caught = sum(one.run.result is Result.CAUGHT for one in ended)
    print(f"\n{table(sorted(ended, key=lambda one: mutants.index(one.mutant)))}\n")
    print(f"{caught} of {len(mutants)} caught, in {time.monotonic() - began:.0f} s")
    return 0 if caught == len(mutants) else 1


def _last_lines(run: PytestRun) -> str:
    return "\n".join(f"    {line}" for line in run.output.splitlines()[-LAST_LINES:])


if __name__ == "__main__":
    sys.exit(asyncio.run(main(chosen(sys.argv[1:]), int(os.environ.get("WORKERS") or 2))))
