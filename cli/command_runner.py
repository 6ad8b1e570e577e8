"""Runs one command of the command line. A `Failure` ends the process with its status and one line on stderr."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

import typer

from cli.errors import Failure


def run(work: Coroutine[Any, Any, None]) -> None:
    try:
        asyncio.run(work)
    except Failure as failure:
        _end_with(failure)
    except ExceptionGroup as group:  # raised by the task of a broker connection
        if (failures := group.subgroup(Failure)) is None:
            raise
        _end_with(_innermost(failures))


def _innermost(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _end_with(failure: Exception) -> NoReturn:
    sys.stderr.write(f"duebell: {failure}\n")
    raise typer.Exit(failure.status if isinstance(failure, Failure) else Failure.status) from None
