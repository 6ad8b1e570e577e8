"""From a typed function to a process that ends with the right status and one clear line."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

import typer

from cli.failures import Failure


def run(work: Coroutine[Any, Any, None]) -> None:
    try:
        asyncio.run(work)
    except Failure as failure:
        sys.stderr.write(f"duebell: {failure}\n")
        raise typer.Exit(failure.status) from None
