"""Runs one command of the command line. A `Failure` ends the process with its status and one line on stderr."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

import typer

from cli.errors import Failure

# What a shell says of a command that Ctrl-C has ended.
INTERRUPTED = 130


def run(work: Coroutine[Any, Any, None]) -> None:
    try:
        asyncio.run(work)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if (failure := failure_in(error)) is None:
            raise
        sys.stderr.write(f"duebell: {failure}\n")
        raise typer.Exit(failure.status) from None


def failure_in(error: Exception) -> Failure | None:
    """Return the failure, also one that the task of a broker connection has raised; None for any other error."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, ExceptionGroup):
        return next((failure for inner in error.exceptions if (failure := failure_in(inner))), None)
    return None
