"""How every chaos run ends: the table and the summary, what was broken, and the exit status."""

import argparse
import os
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TypeVar

import msgspec

from stack.errors import StackError
from tests.chaos.invariants import check
from tests.chaos.ledger import Ledger
from tests.chaos.timeline import explain

AnyFault = TypeVar("AnyFault", bound=Enum)


def exit_status_of(run: Callable[[], int]) -> int:
    """Return the exit status of a run, also of one that cannot start or that Ctrl-C ends."""
    try:
        return run()
    except StackError as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Nothing is left running.")
        return 130


def conclude(ledger: Ledger, results: str, file: Path, logs: Path, again: str) -> int:
    """Print the results and write them into the file. Return 1 if a promise is broken or a fault did not happen.
    `again` is the command that repeats the run.
    """
    (logs / "ledger.json").write_bytes(msgspec.json.encode(ledger))
    file.write_text(f"{results}\n")
    print(f"\n{results}\n")
    violations = check(ledger)
    missed = [struck for struck in ledger.struck if struck.missed]
    for struck in missed:
        print(f"✗ {struck.strike.label} did not happen: {struck.note}")
    if violations:
        print(explain(ledger, violations))
    if violations or missed:
        print(f"\n{len(violations)} broken promises, {len(missed)} faults that did not happen.")
        print(f"The logs, and the ledger of all that was seen, are in {logs}.")
        print(f"To repeat the faults in their order: {again}")
        return 1
    print(f"All promises kept. The table is in {os.path.relpath(file)}, too.")
    return 0


def parser_of(faults: type[AnyFault]) -> Callable[[str], tuple[AnyFault, ...]]:
    """Return what reads names of faults with commas between them."""

    def parse(names: str) -> tuple[AnyFault, ...]:
        if unknown := set(names.split(",")) - set(faults.__members__):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
        return tuple(faults[name] for name in names.split(","))

    return parse
