"""`duebell show`."""

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

import orjson
import typer

from cli.command_runner import run
from cli.deliveries_sql import deliveries_of_job
from cli.errors import Failure
from cli.job_list import in_a_line
from cli.output import AsJson, Output, Timezone
from cli.stores import Stores
from cli.table_layout import Column
from shared.reading.jobs import read_job
from shared.recurrence import BadRule, Occurrence, RuleSpec
from shared.recurrence.marked import marked_occurrences
from shared.why.explain import explain
from shared.why.store import read_facts

DELIVERIES = 5
UPCOMING_SHOWN = 5
DELIVERY_COLUMNS = (
    Column("id"),
    Column("status"),
    Column("due_at", rank=2),
    Column("attempts", rank=3),
    Column("failure_reason", heading="reason"),
    Column("next_attempt_at", rank=1),
    Column("finished_at", rank=1),
)
ATTEMPT_COLUMNS = (
    Column("delivery_id", heading="delivery"),
    Column("number"),
    Column("started_at", rank=2),
    Column("took", rank=1),
    Column("status_code"),
    Column("error", wraps=16),
    Column("answer", wraps=16),
)


def show(
    id: Annotated[str, typer.Argument(help="The schedule's id.", metavar="ID")],  # noqa: A002
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """Show one job: why it has or has not fired, its state, its next occurrences, and its last deliveries.

    Example: duebell show invoice-42
    """

    async def work() -> None:
        out = Output.of(as_json, timezone)
        async with Stores.from_environment().database() as connection:
            found = await read_job(connection, id)
            deliveries = await deliveries_of_job(connection, id, DELIVERIES)
            explanation = explain(await read_facts(connection, id), out.zone)
        if found is None:
            raise Failure(f"there is no job {id!r}. {explanation.line}")
        job = {**asdict(found), "rule": orjson.loads(found.rule) if found.rule is not None else None}
        upcoming = _upcoming(job)
        if out.as_json:
            why = {"cause": explanation.cause, "says": explanation.says, "to_do": explanation.to_do or None}
            out.json({**why, "job": with_raw_payload(job), "upcoming": upcoming, "deliveries": deliveries})
            return
        out.say(explanation.line, "bold")
        out.say("")
        shown = {name: value for name, value in job.items() if name not in {"rule_index", "version"}}
        out.sheet({**shown, "labels": in_a_line(found.labels)})
        if upcoming:
            columns = (Column("at"), Column("local", rank=1, heading="by the rule's clock"), Column("note", 2, 24))
            out.table(columns, upcoming, "Next occurrences")
        if deliveries:
            title = "The last delivery" if len(deliveries) == 1 else f"The last {len(deliveries)} deliveries"
            out.table(DELIVERY_COLUMNS, deliveries, title)
            show_attempts(out, [attempt for delivery in deliveries for attempt in delivery["attempts"]])

    run(work())


def with_raw_payload(row: dict[str, Any]) -> dict[str, Any]:
    """Prepare a row for JSON output: its payload stays byte for byte, so that long numbers keep their digits."""
    return {**row, "payload": orjson.Fragment(row["payload"] or "null")}


def show_attempts(out: Output, attempts: list[dict[str, Any]]) -> None:
    if attempts:
        rows = [{**one, "took": timedelta(seconds=one["duration_seconds"])} for one in attempts]
        out.table(ATTEMPT_COLUMNS, rows, "Attempts")


def _upcoming(job: dict[str, Any]) -> list[dict[str, Any]]:
    if job["next_run_at"] is None:
        return []
    if job["rule"] is None:
        return [{"at": job["next_run_at"], "local": None, "note": None}]
    try:
        start = Occurrence(job["next_run_at"], job["rule_index"])
        return [asdict(one) for one in marked_occurrences(RuleSpec(**job["rule"]), UPCOMING_SHOWN, start)]
    except BadRule as error:
        raise Failure(f"the job's rule cannot be read: {error}") from None
