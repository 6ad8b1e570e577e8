"""`make chaos`: the full matrix of faults, for so many minutes, by a seed. Prints what it does as it does it, a table
at the end, and, if a promise was broken, which, with the history of the job. Exits 1 then.
"""

import argparse
import asyncio
import os
import random
import sys
from pathlib import Path

from stack.directory import LOGS, STACK, run_directory
from stack.up import stop_on_signals
from tests.chaos.conclusion import conclude, exit_status_of, parser_of
from tests.chaos.faults import Fault
from tests.chaos.ledger import Ledger
from tests.chaos.progress import progress, silence_libraries
from tests.chaos.result_table import account, as_table
from tests.chaos.run import run
from tests.chaos.script import MIXED, MIXED_SECONDS, full_matrix, write_script


def main() -> int:
    options = _parse()
    silence_libraries()
    stop_on_signals()
    seconds = MIXED_SECONDS if options.mixed else options.minutes * 60
    wanted = MIXED if options.mixed else full_matrix(seconds)
    script = write_script(options.seed, seconds, {fault: wanted[fault] for fault in options.faults})
    print(f"Chaos: {len(script)} faults in {seconds / 60:.1f} minutes or longer, seed {options.seed}.", flush=True)

    def run_all() -> int:
        with run_directory("chaos") as directory:
            with progress(len(script)) as show:
                ledger = asyncio.run(run(directory, options.seed, script, show))
            results = f"{_summary(ledger, options.seed)}\n\n{as_table(account(ledger))}"
            return conclude(ledger, results, options.table, directory / LOGS, _again(options))

    return exit_status_of(run_all)


def _summary(ledger: Ledger, seed: int) -> str:
    drained = "not drained"
    if ledger.drained_at is not None and ledger.last_fault_at is not None:
        drained = f"drained {(ledger.drained_at - ledger.last_fault_at).total_seconds():.1f} s after the last fault"
    keys = {heard.key for heard in ledger.heard}
    return (
        f"Seed {seed}: {len(ledger.struck)} faults; {len(ledger.commands)} commands confirmed, "
        f"{len(ledger.jobs)} jobs, {len(keys)} occurrences heard, {len(ledger.calls)} webhook calls, "
        f"{len(ledger.delayed)} delayed messages confirmed, "
        f"{ledger.fenced} results fenced off; {drained}. "
        f"{os.cpu_count()} processors, load {os.getloadavg()[1]:.0f}."
    )


def _again(options: argparse.Namespace) -> str:
    if options.mixed:
        return f".venv/bin/python -m tests.chaos --mixed --seed {options.seed}"
    faults = "" if options.faults == tuple(Fault) else f" FAULTS={','.join(fault.name for fault in options.faults)}"
    return f"make chaos MINUTES={options.minutes:g} SEED={options.seed}{faults}"


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument(
        "--faults", type=parser_of(Fault), default=tuple(Fault), help=f"some of {', '.join(Fault.__members__)}"
    )
    parser.add_argument("--mixed", action="store_true", help="the short run that is part of make test")
    parser.add_argument("--table", type=Path, default=STACK / "chaos.md", help="a file for the table")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.randrange(1_000_000)
    return options


if __name__ == "__main__":
    sys.exit(main())
