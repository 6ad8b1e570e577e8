"""Options by which commands choose what they list: topic, time and number."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.errors import BadUsage
from cli.time_arguments import parse_moment
from shared.contract.labels import parse_labels

MAX_LIMIT = 10_000
DEFAULT_LIMIT = 50

Limit = Annotated[int, typer.Option(help="At most so many.", min=1, max=MAX_LIMIT)]
Topic = Annotated[str | None, typer.Option(help="This topic and those below it.")]
Label = Annotated[list[str] | None, typer.Option(help="KEY=VALUE; may be repeated: jobs that have all.")]
Since = Annotated[str | None, typer.Option("--from", help="An instant, now, +2h or -30m.")]
Until = Annotated[str | None, typer.Option("--to", help="An instant, now, +2h or -30m.")]


def moment(option: str, text: str | None) -> datetime | None:
    try:
        return None if text is None else parse_moment(text, datetime.now(UTC))
    except ValueError as error:
        raise BadUsage(f"{option}: {error}") from None


def labels_of(option: str, texts: list[str] | None) -> dict[str, str]:
    try:
        return parse_labels(texts or [])
    except ValueError as error:
        raise BadUsage(f"{option}: {error}") from None
