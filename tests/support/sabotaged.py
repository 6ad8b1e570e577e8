"""`python -m tests.support.sabotaged`: a service as it is, but for one step that raises or never returns. SERVICE says
which service, STEP names the step (`module:Class.method`), HOW is `raises` or `hangs`; a turn may take TURN_SECONDS.
"""

import asyncio
import importlib
import os
import sys
from typing import Any

import shared.runtime.loops


class Sabotaged(Exception):
    """Nothing that a loop knows how to live with."""


async def raises(*_: object, **__: object) -> None:
    raise Sabotaged("somebody has put a spanner in the works")


async def hangs(*_: object, **__: object) -> None:
    await asyncio.Event().wait()


def sabotage(step: str, how: str) -> None:
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
        sabotage(os.environ["STEP"], os.environ["HOW"])
    sys.exit(importlib.import_module(f"{os.environ['SERVICE']}.main").main())
