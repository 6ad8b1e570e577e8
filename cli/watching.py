"""Shows a result once, or again and again on a terminal until Ctrl-C (`--watch`)."""

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from cli.command_runner import failure_in
from cli.errors import BadUsage
from cli.output import Output

WATCH_SECONDS = 2.0
Watch = Annotated[
    bool, typer.Option("--watch", "-w", help=f"Show it again every {WATCH_SECONDS:.0f} seconds, until Ctrl-C.")
]

_TO_THE_START = "\x1b[H"
_CLEAR_LINE = "\x1b[K"
_CLEAR_BELOW = "\x1b[J"


async def show(
    look: Callable[[Output], Awaitable[None]], as_json: bool | None, timezone: str | None, *, watch: bool
) -> None:
    """Call `look` once, or again and again. While it is watched, a store that is away is shown and asked again."""
    if not watch:
        await look(Output.of(as_json, timezone))
        return
    if Output.of(as_json, timezone).as_json:
        raise BadUsage("--watch: is for a terminal; without it, each call prints once")
    while True:
        out = Output.of(as_json, timezone)
        with out.console.capture() as screen:
            try:
                await look(out)
            except Exception as error:
                if (failure := failure_in(error)) is None or isinstance(failure, BadUsage):
                    raise
                out.say(f"duebell: {failure}", "red")
            out.say(f"\nEvery {WATCH_SECONDS:.0f} s, {out.clock()}. Ctrl-C ends it.", "bright_black")
        draw(screen.get())
        await asyncio.sleep(WATCH_SECONDS)


def draw(text: str) -> None:
    """Replace what is on the screen. Lines beyond its height are left out, so that the screen does not scroll."""
    lines = text.rstrip("\n").split("\n")[: shutil.get_terminal_size().lines - 1]
    sys.stdout.write(_TO_THE_START + "".join(f"{line}{_CLEAR_LINE}\n" for line in lines) + _CLEAR_BELOW)
    sys.stdout.flush()
