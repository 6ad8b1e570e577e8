"""Prints results: a table or a sheet on a terminal, JSON in a pipe; `--json` and `--table` override this. Questions and
remarks go to stderr, so that stdout has the result alone. JSON has instants in UTC, as messages have; a table has them
in the zone of the reader.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Any

import orjson
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.errors import BadUsage, Failure
from cli.table_layout import GAP, Column, fit, printable, wrap
from shared.contract.fields import format_instant
from shared.errors import BadRule
from shared.reading.times import describe_duration, full_time, short_time, zone_name
from shared.recurrence import load_zone

AsJson = Annotated[
    bool | None,
    typer.Option("--json/--table", help="JSON, or a table; by default a terminal gets a table, a pipe JSON."),
]
Timezone = Annotated[
    str | None,
    typer.Option(
        "--timezone",
        envvar="DUEBELL_TIMEZONE",
        help="IANA name of the zone in which tables show times; missing: this machine's. JSON has UTC.",
        metavar="ZONE",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

# In a pipe, a table that was asked for by --table is as wide as it needs to be.
PIPE_WIDTH = 240

COLOURS = {
    "pending": "cyan", "paused": "yellow", "done": "green", "cancelled": "bright_black",
    "PENDING": "cyan", "PROCESSING": "yellow", "COMPLETED": "green", "FAILED": "red",
    "accepted": "green", "rescheduled": "green", "duplicate": "yellow", "rejected": "red",
    "resumed": "green", "triggered": "green", "unknown": "red", "alive": "green", "silent": "red",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command prints: as JSON or for a person. Times are shown in `zone`, None being that of this machine, and
    beside their distance from `now`.
    """

    as_json: bool
    zone: tzinfo | None
    now: datetime
    width: int
    console: Console = field(repr=False)

    @classmethod
    def of(cls, as_json: bool | None = None, timezone: str | None = None) -> "Output":
        """Build it from the options of a command. Raises BadUsage if there is no such zone. A command without the
        option `--timezone` obeys DUEBELL_TIMEZONE, too.
        """
        name = timezone or os.environ.get("DUEBELL_TIMEZONE")
        try:
            zone = load_zone(name, "--timezone") if name else None
        except BadRule as error:
            raise BadUsage(f"--{error}") from None
        at_terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if at_terminal else int(os.environ.get("COLUMNS") or PIPE_WIDTH)
        console = Console(file=sys.stdout, width=width, highlight=False)
        return cls(not at_terminal if as_json is None else as_json, zone, datetime.now(UTC), width, console)

    def json(self, value: object) -> None:
        options = orjson.OPT_INDENT_2 | orjson.OPT_PASSTHROUGH_DATETIME  # instants end in Z, as in the messages
        sys.stdout.write(orjson.dumps(value, default=_plain, option=options).decode() + "\n")

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Text(wrap(printable(text), self.width), style=style), no_wrap=True, crop=False)

    def remark(self, text: str) -> None:
        """Say something about the result: below a table, and beside JSON on stderr."""
        if self.as_json:
            sys.stderr.write(f"{text}\n")
        else:
            self.say(text)

    def suggest(self, command: str, why: str = "") -> None:
        """Name a command to run next. It is not wrapped: a terminal gives it back whole when it is copied."""
        if self.as_json:
            sys.stderr.write(f"{why}{command}\n")
        else:
            text = Text(why).append(printable(command), style="cyan")
            self.console.print(text, no_wrap=True, crop=False, overflow="ignore", soft_wrap=True)

    def table(self, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], title: str | None = None) -> None:
        """Print a line for each row, nothing without rows. Where even the most important columns have no room, print a
        sheet for each row.
        """
        if not rows:
            return
        if title is not None:
            self.say(f"\n{title}", "bold")
        texts = [[self._cell(row.get(column.name)) for column in columns] for row in rows]
        titles = [self._title(column, rows) for column in columns]
        layout = fit(columns, titles, texts, self.width)
        if layout is None:
            for row in rows:
                self.sheet({column.title: row.get(column.name) for column in columns})
                self.say("")
            return
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
        for index, width in zip(layout.shown, layout.widths, strict=True):
            table.add_column("\n".join(textwrap.wrap(titles[index], width)), width=width, no_wrap=True)
        for row, cells in zip(rows, texts, strict=True):
            table.add_row(*(
                Text(wrap(cells[index], width) if columns[index].wraps else cells[index],
                     style=_style(row.get(columns[index].name)))
                for index, width in zip(layout.shown, layout.widths, strict=True)
            ))  # fmt: skip
        self.console.print(table)
        if dropped := [column.title for index, column in enumerate(columns) if index not in layout.shown]:
            self.say(f"Not shown in {self.width} columns: {', '.join(dropped)}. --json has them.", "bright_black")

    def sheet(self, values: Mapping[str, Any]) -> None:
        """Print one object, a field per line. Fields without a value are left out, those of an object within it have
        the names of both.
        """
        lines = [(name.replace("_", " "), value) for name, value in _flat(values) if value is not None]
        label_width = min(max((len(name) for name, _ in lines), default=0), self.width // 2)
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, GAP, 0, 0))
        table.add_column(no_wrap=True, width=label_width)
        table.add_column(no_wrap=True)
        for name, value in lines:
            text = wrap(self._line(value), max(20, self.width - label_width - GAP))
            table.add_row(Text(wrap(name, label_width), style="bold"), Text(text, style=_style(value)))
        self.console.print(table)

    def time(self, instant: datetime) -> str:
        """Return the time for a sentence."""
        return full_time(instant, self.zone, self.now)

    def time_of_day(self, instant: datetime) -> str:
        """Return the time of an instant that is not long ago."""
        return f"{instant.astimezone(self.zone):%H:%M:%S}"

    def clock(self) -> str:
        """Return the time at which the output was begun, and its zone."""
        return f"{self.time_of_day(self.now)} {zone_name(self.zone, self.now)}"

    def _cell(self, value: object) -> str:
        return short_time(value, self.zone, self.now) if isinstance(value, datetime) else _text(value)

    def _line(self, value: object) -> str:
        return self.time(value) if isinstance(value, datetime) else _text(value)

    def _title(self, column: Column, rows: Sequence[Mapping[str, Any]]) -> str:
        has_times = any(isinstance(row.get(column.name), datetime) for row in rows)
        return f"{column.title} {zone_name(self.zone, self.now)}" if has_times else column.title


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


def _flat(values: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    lines: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            lines += _flat(value, f"{before}{name} ")
        else:
            lines.append((f"{before}{name}", value))
    return lines


def _text(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case timedelta():
            return describe_duration(value)
        case float():
            return f"{value:.6f}".rstrip("0").rstrip(".")  # never 3.5e-05
        case dict() | list():
            return printable(orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATETIME).decode())
        case _:
            return printable(str(value))


def _style(value: object) -> str:
    return "bright_black" if value is None else COLOURS.get(str(value), "")


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError(f"{type(value).__name__} has no JSON form")
