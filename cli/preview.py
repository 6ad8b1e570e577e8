"""`duebell preview`: the next occurrences of a rule, with notes where the clocks change."""

from datetime import UTC, datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from cli.command_runner import run
from cli.errors import Failure
from cli.output import AsJson, Output
from cli.table_layout import Column
from shared.contract.fields import format_instant
from shared.recurrence import BadRule, Occurrence, RuleSpec, compile_rule, load_zone
from shared.recurrence.zones import Fold, Gap


def preview(
    rule: Annotated[str, typer.Argument(help="An RRULE, or five cron fields, or @daily, @hourly, ….")],
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
            found = marked_occurrences(spec, count)
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


def marked_occurrences(spec: RuleSpec, count: int, start: Occurrence | None = None) -> list[dict[str, Any]]:
    """The next occurrences, each with its local time and, where the clocks change, a note."""
    rule = compile_rule(spec)
    zone = load_zone(spec.timezone)
    occurrence = start or rule.first()
    found: list[Occurrence] = []
    while occurrence is not None and len(found) < count:
        found.append(occurrence)
        occurrence = rule.next_after(occurrence)
    return [
        {"at": one.at, "local": one.at.astimezone(zone).strftime("%a %Y-%m-%d %H:%M:%S %Z"), "note": note}
        for one, note in zip(found, _notes(spec, found, zone), strict=True)
    ]


def _notes(spec: RuleSpec, found: list[Occurrence], zone: ZoneInfo) -> list[str | None]:
    notes = []
    before = None
    for one in found:
        local = one.at.astimezone(zone)
        offset = local.utcoffset()
        other_pass = local.replace(fold=1 - local.fold).utcoffset()
        note = None
        if _was_moved(spec, one, zone):
            note = "moved forward: the clocks skip its time on this day"
        elif offset != other_pass:
            note = "the clocks show this time twice on this day: the " + ("second" if local.fold else "first")
        elif before is not None and offset != before:
            note = f"the clocks have changed: {local.strftime('%z')}"
        notes.append(note)
        before = offset
    return notes


def _was_moved(spec: RuleSpec, one: Occurrence, zone: ZoneInfo) -> bool:
    """Tell whether the occurrence was moved: a rule that skips gaps would not have it."""
    hour_before = datetime.fromtimestamp(one.at.timestamp() - 3600, zone).utcoffset()
    if hour_before == one.at.astimezone(zone).utcoffset() or spec.dst_gap == "skip" or spec.every_seconds:
        return False
    skipping = compile_rule(
        RuleSpec(spec.start_at, spec.timezone, spec.rrule, spec.cron, spec.every_seconds, "skip", spec.dst_fold)
    )
    following = skipping.next_after(Occurrence(datetime.fromtimestamp(one.at.timestamp() - 1, UTC), one.index))
    return following is None or following.at != one.at
