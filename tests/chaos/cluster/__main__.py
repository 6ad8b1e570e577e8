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

import msgspec

from stack.directory import LOGS, STACK, run_directory
from stack.errors import StackError
from stack.up import stop_on_signals
from tests.chaos.cluster.run import run
from tests.chaos.cluster.table import account, as_table
from tests.chaos.faults import ClusterFault
from tests.chaos.invariants import check
from tests.chaos.ledger import Ledger
from tests.chaos.progress import progress, silence_libraries
from tests.chaos.timeline import explain


def main() -> int:
    options = _parse()
    silence_libraries()
    stop_on_signals()
    print(f"Chaos on a cluster: {len(options.faults)} faults, {options.rate:g} commands/s, seed {options.seed}.")
    try:
        with run_directory("chaos-cluster") as directory:
            with progress(len(options.faults)) as show:
                wanted = {name: getattr(options, name) for name in ("seed", "rate", "faults")}
                ledger = asyncio.run(run(directory, show, seconds=options.minutes * 60, **wanted))
            return _report(ledger, options, directory / LOGS)
    except StackError as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Nothing is left running.")
        return 130


def _report(ledger: Ledger, options: argparse.Namespace, logs: Path) -> int:
    table, summary = as_table(account(ledger)), _summary(ledger, options)
    (logs / "ledger.json").write_bytes(msgspec.json.encode(ledger))
    options.table.write_text(f"{summary}\n\n{table}\n")
    print(f"\n{summary}\n\n{table}\n")
    violations = check(ledger)
    missed = [struck for struck in ledger.struck if struck.missed]
    for struck in missed:
        print(f"✗ {struck.strike.label} did not happen: {struck.note}")
    if violations:
        print(explain(ledger, violations))
    if violations or missed:
        print(f"\n{len(violations)} broken promises, {len(missed)} faults that did not happen.")
        print(f"The logs, and the ledger of all that was seen, are in {logs}.")
        print(f"To repeat the order of faults: {_again(options)}")
        return 1
    print(f"All promises kept. The table is in {os.path.relpath(options.table)}, too.")
    return 0


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
    parser.add_argument("--faults", type=_faults, default=tuple(ClusterFault), help=f"some of {names}")
    parser.add_argument("--table", type=Path, default=STACK / "chaos-cluster.md", help="a file for the table")
    return parser.parse_args()


def _faults(names: str) -> tuple[ClusterFault, ...]:
    if unknown := set(names.split(",")) - set(ClusterFault.__members__):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return tuple(ClusterFault[name] for name in names.split(","))


if __name__ == "__main__":
    sys.exit(main())
