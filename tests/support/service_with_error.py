"""`python -m tests.support.service_with_error`: a service of which one step raises or never returns. SERVICE names the
service, STEP the step (`module:Class.method`), HOW is `raises` or `hangs`, TURN_SECONDS is the watchdog's limit.
"""

import asyncio
import importlib
import os
import sys
from typing import Any

import shared.runtime.loops


class InjectedError(Exception):
    """An error that no loop of a service expects."""


async def raises(*_: object, **__: object) -> None:
    raise InjectedError("raised on purpose")


async def hangs(*_: object, **__: object) -> None:
    await asyncio.Event().wait()


def replace_step(step: str, how: str) -> None:
    module, _, path = step.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    if not callable(getattr(owner, name)):
        raise TypeError(step)
    setattr(owner, name, {"raises": raises, "hangs": hangs}[how])


if __name__ == "__main__":
    shared.runtime.loops.MAX_TURN_SECONDS = float(os.environ["TURN_SECONDS"])
    if "STEP" in os.environ:
        replace_step(os.environ["STEP"], os.environ["HOW"])
    sys.exit(importlib.import_module(f"{os.environ['SERVICE']}.main").main())
