"""Runs the tests of mutants: once in the code as it is, then with each mutant by itself, a few at a time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from tests.mutants.checkout import a_copy
from tests.mutants.mutant import CodeHasMoved, Mutant
from tests.mutants.pytest_run import PytestRun, Result, run_tests

# For one mutant, and for all tests together before the first mutant.
SECONDS_PER_MUTANT = 180.0
SECONDS_WITHOUT = 900.0


@dataclass(frozen=True, slots=True)
class MutantRun:
    mutant: Mutant
    run: PytestRun


async def run_without_mutants(mutants: Sequence[Mutant]) -> PytestRun:
    """All named tests in the code as it is. They must pass: otherwise a failure later says nothing about a mutant."""
    tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    with a_copy() as directory:
        return await run_tests(directory, tests, SECONDS_WITHOUT, to_the_end=True)


async def run_each(mutants: Sequence[Mutant], workers: int) -> AsyncIterator[MutantRun]:
    """Each mutant with its result, in the order in which they end."""
    places = asyncio.Semaphore(workers)

    async def one(mutant: Mutant) -> MutantRun:
        async with places:
            return MutantRun(mutant, await _run_with(mutant))

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(one(mutant)) for mutant in mutants]
        for ended in asyncio.as_completed(running):
            yield await ended


async def _run_with(mutant: Mutant) -> PytestRun:
    try:
        with a_copy(mutant) as directory:
            return await run_tests(directory, mutant.tests, SECONDS_PER_MUTANT)
    except CodeHasMoved as error:
        return PytestRun(Result.MOVED, 0.0, output=str(error))
