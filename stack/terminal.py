"""Shows a journey on a terminal: its steps with their times, and checks at the end, which give the exit code."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape

from stack.errors import StackError
from stack.up import stop_on_signals


@dataclass(frozen=True, slots=True)
class Check:
    text: str
    passed: bool


def show_journey(name: str, run: Callable[[Console], Sequence[Check]], what_next: str) -> int:
    """Run a journey and show it. Returns the exit code: 0 if all checks passed. `name` is the name of its directory."""
    stop_on_signals()
    console = Console(highlight=False, soft_wrap=True)
    logs = f"The logs are in .stack/{name}/logs."
    try:
        failed = [check.text for check in run(console) if not check.passed]
    except (StackError, TimeoutError) as error:
        reason = str(error) or "Something did not happen in time."
        console.print(f"\n[bold red]This could not be shown.[/] {escape(reason)}\n{logs}")
        return 1
    except KeyboardInterrupt:
        console.print("\nStopped. Nothing is left running.")
        return 130
    if failed:
        console.print(f"\n[bold red]Not as it should be:[/] {escape('; '.join(failed))}.\n{logs}")
        return 1
    console.print(f"\n[bold]All true.[/] {what_next}\n")
    return 0


def show_checks(console: Console, checks: Sequence[Check]) -> None:
    console.print()
    for check in checks:
        console.print(f"  [green]✓[/] {check.text}" if check.passed else f"  [bold red]✗ {check.text}[/]")
    console.print()


@contextmanager
def timed(console: Console, text: str) -> Iterator[None]:
    began = time.monotonic()
    with console.status(f"  {text} …"):
        yield
    console.print(f"  [green]✓[/] {text} [dim]({time.monotonic() - began:.1f} s)[/]")
