"""`duebell list` and `duebell show`."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import orjson
import typer

from cli.command_runner import run
from cli.deliveries_sql import deliveries_of_job
from cli.errors import BadUsage, Failure
from cli.output import AsJson, Output, Timezone
from cli.preview import marked_occurrences
from cli.stores import Stores
from cli.table_layout import Column
from cli.time_arguments import parse_moment
from shared.reading.jobs import JobState, Wanted, list_jobs, read_job
from shared.recurrence import BadRule, Occurrence, RuleSpec

DELIVERIES = 5
UPCOMING_SHOWN = 5
DELIVERY_COLUMNS = (
    Column("id"),
    Column("status"),
    Column("due_at", rank=2),
    Column("attempt", rank=3),
    Column("failure_reason"),
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

Limit = Annotated[int, typer.Option(help="At most so many.", min=1, max=10_000)]
Topic = Annotated[str | None, typer.Option(help="This topic and those below it.")]
Since = Annotated[str | None, typer.Option("--from", help="An instant, now, +2h or -30m.")]
Until = Annotated[str | None, typer.Option("--to", help="An instant, now, +2h or -30m.")]


class State(StrEnum):
    PENDING = "pending"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"


def list_(
    state: Annotated[State, typer.Option(help="Which jobs.")] = State.PENDING,
    topic: Topic = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """List jobs: the next to ring first; of those that ended, the last to end first. `--from` and `--to` bound that
    moment.

    Examples:

    duebell list --topic invoices --to +24h

    duebell list --state cancelled --from -7d --json
    """

    async def work() -> None:
        out = Output.of(as_json, timezone)
        wanted = Wanted(JobState(state), None, topic, moment("--from", since), moment("--to", until))
        async with Stores.from_environment().database() as connection:
            page = await list_jobs(connection, wanted, limit)
        jobs = [asdict(job) for job in page.jobs]
        if out.as_json:
            out.json(jobs)
            return
        rows = [{**job, "schedule": describe_rule(job), "rang": job["sequence"]} for job in jobs]
        when = "next_run_at" if state in {State.PENDING, State.PAUSED} else "finished_at"
        out.table(
            (
                Column("id"),
                Column("status", rank=4),
                Column("topic", rank=3),
                Column(when),
                Column("schedule", rank=1, wraps=16),
                Column("rang", rank=2),
                Column("revision", rank=6),
                Column("owner", rank=5),
            ),
            rows,
        )
        out.say(f"{len(jobs)} {state}" + (f", and maybe more: --limit is {limit}" if len(jobs) == limit else ""))

    run(work())


def show(
    id: Annotated[str, typer.Argument(help="The schedule's id.", metavar="ID")],  # noqa: A002
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """Show one job: its state, its next occurrences, and its last deliveries with their attempts.

    Example: duebell show invoice-42
    """

    async def work() -> None:
        out = Output.of(as_json, timezone)
        async with Stores.from_environment().database() as connection:
            found = await read_job(connection, id)
            deliveries = await deliveries_of_job(connection, id, DELIVERIES)
        if found is None:
            raise Failure(f"there is no job {id!r}; jobs that ended are kept for RETENTION_DAYS")
        job = {**asdict(found), "rule": orjson.loads(found.rule) if found.rule is not None else None}
        upcoming = _upcoming(job)
        if out.as_json:
            out.json({"job": with_raw_payload(job), "upcoming": upcoming, "deliveries": deliveries})
            return
        out.sheet({name: value for name, value in job.items() if name not in {"rule_index", "version"}})
        if upcoming:
            columns = (Column("at"), Column("local", rank=1, heading="by the rule's clock"), Column("note", 2, 24))
            out.table(columns, upcoming, "Next occurrences")
        if deliveries:
            title = "The last delivery" if len(deliveries) == 1 else f"The last {len(deliveries)} deliveries"
            out.table(DELIVERY_COLUMNS, deliveries, title)
            show_attempts(out, [attempt for delivery in deliveries for attempt in delivery["attempts"]])

    run(work())


def with_raw_payload(row: dict[str, Any]) -> dict[str, Any]:
    """For JSON output: the payload byte for byte, so that long numbers keep their digits."""
    return {**row, "payload": orjson.Fragment(row["payload"] or "null")}


def moment(option: str, text: str | None) -> datetime | None:
    try:
        return None if text is None else parse_moment(text, datetime.now(UTC))
    except ValueError as error:
        raise BadUsage(f"{option}: {error}") from None


def show_attempts(out: Output, attempts: list[dict[str, Any]]) -> None:
    if attempts:
        rows = [{**one, "took": timedelta(seconds=one["duration_seconds"])} for one in attempts]
        out.table(ATTEMPT_COLUMNS, rows, "Attempts")


def describe_rule(job: dict[str, Any]) -> str:
    if job["every_seconds"]:
        return f"every {job['every_seconds']} s"
    return job["rrule"] or job["cron"] or "once"


def _upcoming(job: dict[str, Any]) -> list[dict[str, Any]]:
    if job["next_run_at"] is None:
        return []
    if job["rule"] is None:
        return [{"at": job["next_run_at"], "local": None, "note": None}]
    try:
        start = Occurrence(job["next_run_at"], job["rule_index"])
        return marked_occurrences(RuleSpec(**job["rule"]), UPCOMING_SHOWN, start)
    except BadRule as error:
        raise Failure(f"the job's rule cannot be read: {error}") from None
