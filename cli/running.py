"""From a typed function to a process that ends with the right status and one clear line."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

import typer

from cli.failures import Failure


def run(work: Coroutine[Any, Any, None]) -> None:
    try:
        asyncio.run(work)
    except Failure as failure:
        _end_with(failure)
    except ExceptionGroup as group:  # from under a broker's connection, which has a task of its own
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
