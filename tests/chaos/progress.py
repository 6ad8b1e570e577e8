"""Progress of a run: a bar on a terminal, one line per fault in a pipe."""

import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.chaos.ledger import Struck


@contextmanager
def progress(number: int) -> Iterator[Callable[[Struck], None]]:
    """Show progress for `number` faults. Yields a function to call with each fault that has struck."""
    if sys.stdout.isatty():
        with _bar(number) as show:
            yield show
    else:
        yield plain_lines()


def plain_lines() -> Callable[[Struck], None]:
    began = time.monotonic()

    def show(struck: Struck) -> None:
        print(f"  {time.monotonic() - began:6.1f} s  {describe(struck)}", flush=True)

    return show


def describe(struck: Struck) -> str:
    seconds = (struck.ended_at - struck.began_at).total_seconds()
    parts = [struck.strike.label, struck.strike.victim, f"{seconds:.1f} s", struck.note]
    return ("MISSED " if struck.missed else "") + ", ".join(filter(None, parts))


@contextmanager
def _bar(number: int) -> Iterator[Callable[[Struck], None]]:
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(highlight=False)) as bar:
        task = bar.add_task("starting", total=number)
        yield lambda struck: bar.update(task, advance=1, description=describe(struck))


def silence_libraries() -> None:
    """Silence what the AMQP libraries log and warn about lost connections."""
    for name in ("aio_pika", "aiormq"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore", RuntimeWarning)  # aio-pika's __del__ in a thread without a loop
