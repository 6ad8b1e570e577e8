"""Prints results: a table or a sheet on a terminal, JSON in a pipe; `--json` and `--table` override this. Questions and
remarks go to stderr, so that stdout has the result alone.
"""

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

import orjson
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.errors import Failure
from shared.contract.fields import format_instant

AsJson = Annotated[
    bool | None,
    typer.Option("--json/--table", help="JSON, or a table; by default a terminal gets a table, a pipe JSON."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

COLOURS = {
    "pending": "cyan", "paused": "yellow", "done": "green", "cancelled": "bright_black",
    "PENDING": "cyan", "PROCESSING": "yellow", "COMPLETED": "green", "FAILED": "red",
    "accepted": "green", "rescheduled": "green", "duplicate": "yellow", "rejected": "red",
    "resumed": "green", "triggered": "green", "ok": "green",
}  # fmt: skip


def wants_json(asked: bool | None) -> bool:
    return not sys.stdout.isatty() if asked is None else asked


def show_json(value: object) -> None:
    options = orjson.OPT_INDENT_2 | orjson.OPT_PASSTHROUGH_DATETIME  # instants end in Z, as in the messages
    sys.stdout.write(orjson.dumps(value, default=_plain, option=options).decode() + "\n")


def show_table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], title: str | None = None) -> None:
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(cell(row.get(column)) for column in columns))
    _console().print(table)


def show_sheet(values: Mapping[str, Any]) -> None:
    """Print one object, a field per line. Fields without a value are left out."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in values.items():
        if value is not None:
            table.add_row(Text(name.replace("_", " "), style="bold"), cell(value))
    _console().print(table)


def say(text: str) -> None:
    _console().print(Text(text))


def cell(value: object) -> Text:
    match value:
        case None:
            return Text("-", style="bright_black")
        case datetime():
            return Text(format_instant(value.replace(microsecond=value.microsecond // 1000 * 1000)))
        case timedelta():
            return Text(f"{value.total_seconds():g} s")
        case dict() | list():
            return Text(orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATETIME).decode())
        case _:
            return Text(str(value), style=COLOURS.get(str(value), ""))


def require_consent(what: str, *, yes: bool) -> None:
    """Ask before an action that cannot be undone. Raises Failure unless the user agrees or `yes` is given."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure(f"{what}: say --yes to do it")
    sys.stderr.write(f"{what}. Go on? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Failure("nothing was changed")


def _console() -> Console:
    # In a pipe, a table that was asked for by --table is as wide as it needs to be.
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else 240, highlight=False)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError(f"{type(value).__name__} has no JSON form")
