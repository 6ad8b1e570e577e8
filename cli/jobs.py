"""`duebell list` and `duebell show`."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import orjson
import typer

from cli.command_runner import run
from cli.deliveries_sql import deliveries_of_job
from cli.errors import BadUsage, Failure
from cli.jobs_sql import Wanted, list_jobs, read_job
from cli.output import AsJson, say, show_json, show_sheet, show_table, wants_json
from cli.preview import marked_occurrences
from cli.stores import Stores
from cli.time_arguments import parse_moment
from shared.recurrence import BadRule, Occurrence, RuleSpec

DELIVERIES = 5
UPCOMING_SHOWN = 5

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
    as_json: AsJson = None,
) -> None:
    """List jobs: the next to ring first; of those that ended, the last to end first. `--from` and `--to` bound that
    moment.

    Examples:

    duebell list --topic invoices --to +24h

    duebell list --state cancelled --from -7d --json
    """

    async def work() -> None:
        wanted = Wanted(state, topic, moment("--from", since), moment("--to", until), limit)
        async with Stores.from_environment().database() as connection:
            jobs = await list_jobs(connection, wanted)
        if wants_json(as_json):
            show_json(jobs)
            return
        rows = [{**job, "schedule": describe_rule(job), "rang": job["sequence"]} for job in jobs]
        when = "next_run_at" if state in {State.PENDING, State.PAUSED} else "finished_at"
        show_table(("id", "status", "topic", when, "schedule", "rang", "revision", "owner"), rows)
        say(f"{len(jobs)} {state}" + (f", and maybe more: --limit is {limit}" if len(jobs) == limit else ""))

    run(work())


def show(id: Annotated[str, typer.Argument(help="The schedule's id.", metavar="ID")], as_json: AsJson = None) -> None:  # noqa: A002
    """Show one job: its state, its next occurrences, and its last deliveries with their attempts.

    Example: duebell show invoice-42
    """

    async def work() -> None:
        async with Stores.from_environment().database() as connection:
            job = await read_job(connection, id)
            deliveries = await deliveries_of_job(connection, id, DELIVERIES)
        if job is None:
            raise Failure(f"there is no job {id!r}; jobs that ended are kept for RETENTION_DAYS")
        for field in ("webhook", "rule"):
            job[field] = orjson.loads(job[field]) if job[field] is not None else None
        _hide_header_values(job["webhook"])
        upcoming = _upcoming(job)
        if wants_json(as_json):
            show_json({"job": with_raw_payload(job), "upcoming": upcoming, "deliveries": deliveries})
            return
        show_sheet({name: value for name, value in job.items() if name not in {"rule_index", "version"}})
        if upcoming:
            show_table(("at", "local", "note"), upcoming, "\nNext occurrences")
        if deliveries:
            columns = ("id", "status", "due_at", "attempt", "failure_reason", "next_attempt_at", "finished_at")
            show_table(columns, deliveries, f"\nLast {len(deliveries)} deliveries")
            show_attempts([attempt for delivery in deliveries for attempt in delivery["attempts"]])

    run(work())


def with_raw_payload(row: dict[str, Any]) -> dict[str, Any]:
    """For JSON output: the payload byte for byte, so that long numbers keep their digits."""
    return {**row, "payload": orjson.Fragment(row["payload"] or "null")}


def moment(option: str, text: str | None) -> datetime | None:
    try:
        return None if text is None else parse_moment(text, datetime.now(UTC))
    except ValueError as error:
        raise BadUsage(f"{option}: {error}") from None


def show_attempts(attempts: list[dict[str, Any]]) -> None:
    if attempts:
        columns = ("delivery_id", "number", "started_at", "duration_seconds", "status_code", "error", "answer")
        show_table(columns, attempts, "\nAttempts")


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


def _hide_header_values(webhook: dict[str, Any] | None) -> None:
    # Header values may be tokens: they are not shown.
    if webhook:
        webhook["headers"] = dict.fromkeys(webhook.get("headers", {}), "…")
