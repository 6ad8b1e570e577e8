"""`make chaos CLUSTER=1`: three RabbitMQ nodes and two servers of Postgres, lost in every way, under load, by a seed.
Prints what it does as it does it, a table at the end, and, if a promise was broken, which, with the history of the job.
Exits 1 then.
"""

import argparse
import asyncio
import os
import random
import sys
from pathlib import Path

from stack.directory import LOGS, STACK, run_directory
from stack.up import stop_on_signals
from tests.chaos.cluster.run import run
from tests.chaos.cluster.table import account, as_table
from tests.chaos.conclusion import conclude, exit_status_of, parser_of
from tests.chaos.faults import ClusterFault
from tests.chaos.ledger import Ledger
from tests.chaos.progress import progress, silence_libraries


def main() -> int:
    options = _parse()
    silence_libraries()
    stop_on_signals()
    print(f"Chaos on a cluster: {len(options.faults)} faults, {options.rate:g} commands/s, seed {options.seed}.")

    def run_all() -> int:
        with run_directory("chaos-cluster") as directory:
            with progress(len(options.faults)) as show:
                wanted = {name: getattr(options, name) for name in ("seed", "rate", "faults")}
                ledger = asyncio.run(run(directory, show, seconds=options.minutes * 60, **wanted))
            results = f"{_summary(ledger, options)}\n\n{as_table(account(ledger))}"
            return conclude(ledger, results, options.table, directory / LOGS, _again(options))

    return exit_status_of(run_all)


def _summary(ledger: Ledger, options: argparse.Namespace) -> str:
    commands = sorted(command.confirmed_at for command in ledger.commands)
    seconds = (commands[-1] - commands[0]).total_seconds() if commands else 0.0
    return (
        f"Seed {options.seed}: {len(ledger.struck)} faults in {seconds:.0f} s; {len(commands)} commands confirmed "
        f"({len(commands) / max(seconds, 1):.0f}/s), {len(ledger.jobs)} jobs, "
        f"{len({heard.key for heard in ledger.heard})} occurrences heard, {len(ledger.calls)} webhook calls. "
        f"{os.cpu_count()} processors, load {os.getloadavg()[1]:.0f}."
    )


def _again(options: argparse.Namespace) -> str:
    names = "" if options.faults == tuple(ClusterFault) else f" FAULTS={','.join(one.name for one in options.faults)}"
    return f"make chaos CLUSTER=1 MINUTES={options.minutes:g} SEED={options.seed}{names}"


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.cluster", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="it takes one round of all faults at least")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--rate", type=float, default=200.0, help="commands in a second")
    names = ", ".join(ClusterFault.__members__)
    parser.add_argument("--faults", type=parser_of(ClusterFault), default=tuple(ClusterFault), help=f"some of {names}")
    parser.add_argument("--table", type=Path, default=STACK / "chaos-cluster.md", help="a file for the table")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
