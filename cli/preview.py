"""`duebell preview`: the next occurrences of a rule, with notes where the clocks change."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.command_runner import run
from cli.errors import Failure
from cli.output import AsJson, Output
from cli.table_layout import Column
from shared.contract.fields import format_instant
from shared.recurrence import BadRule, RuleSpec
from shared.recurrence.marked import marked_occurrences
from shared.recurrence.zones import Fold, Gap


def preview(
    rule: Annotated[str, typer.Argument(help="An RRULE, or five cron fields, or @daily, @hourly, ….", metavar="RULE")],
    timezone: Annotated[str, typer.Option(help="IANA name.")] = "UTC",
    start_at: Annotated[str | None, typer.Option(help="Where the rule starts; missing: now.")] = None,
    dst_gap: Annotated[Gap | None, typer.Option(help="What becomes of a time that the clocks skip.")] = None,
    dst_fold: Annotated[Fold | None, typer.Option(help="What becomes of a time that the clocks show twice.")] = None,
    count: Annotated[int, typer.Option("--count", "-n", help="How many.", min=1, max=1000)] = 10,
    as_json: AsJson = None,
) -> None:
    """Show the next occurrences of a rule, computed by the code that the services use. Needs no connection.

    Examples:

    duebell preview "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9" --timezone Europe/Berlin

    duebell preview "30 2 * * *" --timezone America/New_York --start-at 2027-03-13T00:00:00
    """

    async def work() -> None:
        out = Output.of(as_json)
        is_cron = looks_like_cron(rule)
        spec = RuleSpec(
            start_at=start_at or format_instant(datetime.now(UTC)),
            timezone=timezone,
            rrule=None if is_cron else rule,
            cron=rule if is_cron else None,
            dst_gap=dst_gap,
            dst_fold=dst_fold,
        )
        try:
            found = [asdict(one) for one in marked_occurrences(spec, count)]
        except BadRule as error:
            raise Failure(str(error)) from None
        if not found:
            raise Failure("the rule has no occurrence")
        if out.as_json:
            out.json(found)
        else:
            rows = [{**one, "at": format_instant(one["at"])} for one in found]
            out.table((Column("at", rank=1), Column("local"), Column("note", wraps=24)), rows)

    run(work())


def looks_like_cron(rule: str) -> bool:
    return rule.startswith("@") or ("=" not in rule and ":" not in rule)
