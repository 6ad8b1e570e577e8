"""`duebell deliveries`: list and show deliveries, and replay failed ones."""

from enum import StrEnum
from typing import Annotated

import typer

from cli.command_runner import run
from cli.deliveries_sql import Wanted, attempts_of, list_deliveries, read_delivery
from cli.errors import BadUsage, Failure
from cli.job_show import show_attempts, with_raw_payload
from cli.operator import operator_name
from cli.output import AsJson, Output, Timezone, Yes, require_consent
from cli.selection import DEFAULT_LIMIT, Limit, Since, Topic, Until, moment
from cli.stores import Stores
from cli.table_layout import Column
from delivery.store import replay as failed_deliveries

REPLAY_BATCH_ROWS = 500
TO_REPLAY = "to insert into deliveries and history"
REPLAY_COLUMNS = (
    Column("id"),
    Column("job_id"),
    Column("topic", rank=3),
    Column("due_at", rank=4),
    Column("finished_at", rank=1),
    Column("attempts", rank=5),
    Column("failure_reason"),
    Column("host", rank=2),
)

app = typer.Typer(no_args_is_help=True, help="List and show deliveries, and replay failed ones.")


class State(StrEnum):
    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"


@app.command("list")
def list_(
    state: Annotated[State, typer.Option(help="Which deliveries.")] = State.FAILED,
    job: Annotated[str | None, typer.Option(help="Of this job.")] = None,
    topic: Topic = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = DEFAULT_LIMIT,
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """List deliveries: of open ones the next to be tried first, with the reason of its last attempt; of those that
    ended, the last to end first.

    Examples:

    duebell deliveries list

    duebell deliveries list --state open --topic invoices
    """

    async def work() -> None:
        out = Output.of(as_json, timezone)
        wanted = Wanted(state, job, topic, moment("--from", since), moment("--to", until), limit)
        async with Stores.from_environment().database() as connection:
            found = await list_deliveries(connection, wanted)
        if out.as_json:
            out.json(found)
            return
        when = "next_attempt_at" if state is State.OPEN else "finished_at"
        columns = (
            Column("id"),
            Column("job_id"),
            Column("topic", rank=4),
            Column("status", rank=6),
            Column("host", rank=2),
            Column("attempts", rank=3),
            Column("due_at", rank=5),
            Column(when, rank=1),
            Column("failure_reason", heading="last reason" if state is State.OPEN else "reason"),
        )
        out.table(columns, found)
        out.say(f"{len(found)} {state}" + (f", and maybe more: --limit is {limit}" if len(found) == limit else ""))

    run(work())


@app.command()
def show(
    id: Annotated[int, typer.Argument(help="The delivery's number.", metavar="ID")],  # noqa: A002
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """Show one delivery with all its attempts and what the receiver said.

    Example: duebell deliveries show 1234
    """

    async def work() -> None:
        out = Output.of(as_json, timezone)
        async with Stores.from_environment().database() as connection:
            found = await read_delivery(connection, id)
            attempts = (await attempts_of(connection, [id]))[id]
        if found is None:
            raise Failure(f"there is no delivery {id}")
        if out.as_json:
            out.json({**with_raw_payload(found), "attempts": attempts})
            return
        out.sheet(found)
        show_attempts(out, attempts)

    run(work())


@app.command()
def replay(
    ids: Annotated[list[int] | None, typer.Argument(help="Failed deliveries.", metavar="ID…")] = None,
    *,
    job: Annotated[list[str] | None, typer.Option(help="Of this job; may be repeated.")] = None,
    reason: Annotated[str | None, typer.Option(help="Such as http_503, timeout, or http_5*.")] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which.")] = False,
    yes: Yes = False,
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """Try failed deliveries again, under the same idempotency key. Conditions are joined by and.

    Examples:

    duebell deliveries replay 1234

    duebell deliveries replay --reason 'http_5*' --from -24h --dry-run
    """

    async def work() -> None:
        out = Output.of(as_json, timezone)
        wanted = failed_deliveries.ReplayFilter(
            ids or None, job or None, moment("--from", since), moment("--to", until), reason
        )
        if wanted == failed_deliveries.ReplayFilter():
            raise BadUsage("say which: ids, --job, --reason, --from or --to")
        async with Stores.from_environment().database(None if dry_run else TO_REPLAY) as connection:
            failed = await failed_deliveries.select_failed(connection, wanted, limit)
            if not failed:
                raise Failure("no failed delivery matches, or all that match were replayed already")
            rows = [{name: getattr(one, name) for name in one.__slots__} for one in failed]
            replayed: dict[int, int] = {}
            if not out.as_json:
                out.table(REPLAY_COLUMNS, rows)
            if not dry_run:
                require_consent(f"This calls the webhooks of {len(failed)} failed deliveries again", yes=yes)
                for first in range(0, len(failed), REPLAY_BATCH_ROWS):
                    replayed |= await failed_deliveries.replay(
                        connection, [one.id for one in failed[first : first + REPLAY_BATCH_ROWS]], operator_name()
                    )
        if out.as_json:
            rows = [{**row, "replayed_as": replayed.get(row["id"])} for row in rows]
            out.json({"dry_run": dry_run, "deliveries": rows})
        else:
            out.say(f"{len(failed)} would be replayed" if dry_run else f"{len(replayed)} replayed")

    run(work())
