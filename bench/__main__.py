"""`make bench`: runs the benchmarks on a stack of their own, shows each figure as it is found, prints one table and
writes it to bench/results/ as JSON and as plots. `ONLY=firing,ingest` chooses, `PEERS=1` adds other schedulers.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from bench.catalogue import BENCHMARKS, ON_REQUEST
from bench.figures import Figure
from bench.plan import FULL, TINY, USUAL, Plan
from bench.results import write_results
from bench.rig import Rig, a_rig
from bench.table import as_line, as_table
from stack.errors import StackError
from stack.up import stop_on_signals

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    stop_on_signals()
    console = Console(highlight=False, soft_wrap=True)
    plan = TINY if options.tiny else FULL if options.full else USUAL
    names = options.only.split(",") if options.only else [name for name in BENCHMARKS if name not in ON_REQUEST]
    names += [name for name in ON_REQUEST if options.peers and name not in names]
    try:
        with console.status("Starting Postgres and RabbitMQ …"), a_rig() as rig:
            figures = asyncio.run(_run(rig, names, plan, console))
    except KeyboardInterrupt:
        console.print("\nStopped. Nothing is left running.")
        return 130
    except StackError as error:
        console.print(f"The stack could not be started. {error}")
        return 1
    Console(width=max(console.width, 160)).print(as_table(figures))
    written = write_results(figures, options.results, whole=not options.only)
    console.print(f"Written: {', '.join(str(path) for path in written)}")
    return 0


async def _run(rig: Rig, names: Sequence[str], plan: Plan, console: Console) -> list[Figure]:
    figures: list[Figure] = []
    for name in names:
        began = time.monotonic()
        console.print(f"\n[bold]{BENCHMARKS[name].title}[/] [dim]({name})[/]")
        with console.status(f"  {name} …"):
            async for figure in BENCHMARKS[name].run(rig, plan):
                figures.append(replace(figure, of=name))
                console.print(f"  {as_line(figure)} [dim]{time.monotonic() - began:.0f} s[/]")
    return figures


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="How fast Duebell is, beside its ceilings.")
    parser.add_argument("--only", default="", help=f"some of {', '.join(BENCHMARKS)}, with commas")
    parser.add_argument("--peers", action="store_true", help="other schedulers, too: they are installed into .stack")
    parser.add_argument("--full", action="store_true", help="with five million rows, which takes longer")
    parser.add_argument("--tiny", action="store_true", help="just to see that it works; the figures are worth nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where JSON and plots go")
    options = parser.parse_args(arguments)
    if unknown := set(filter(None, options.only.split(","))) - BENCHMARKS.keys():
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
