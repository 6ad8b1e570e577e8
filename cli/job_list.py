"""`duebell list`."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from cli.command_runner import run
from cli.errors import BadUsage
from cli.output import AsJson, Output, Timezone
from cli.selection import DEFAULT_LIMIT, Label, Limit, Since, Topic, Until, labels_of, moment
from cli.stores import Stores
from cli.table_layout import Column
from cli.watching import Watch, show
from shared.postgres.pool import Connection
from shared.reading.attention import amount
from shared.reading.jobs import MAX_COUNT, Count, Cursor, JobState, ListedJob, Page, Wanted, count_jobs, list_jobs

# A search goes on for so long, where few jobs match. The command to go on is printed.
SEARCH_SECONDS = 10.0

# What the moment of a row is, in the order of the state.
_MOMENTS: Mapping[JobState, str] = {
    JobState.ALL: "ended, or rings",
    JobState.PENDING: "rings",
    JobState.REFUSED: "tried again",
    JobState.PAUSED: "next run",
    JobState.DONE: "ended",
    JobState.CANCELLED: "ended",
}


def list_(
    state: Annotated[
        JobState | None, typer.Option(help="Which jobs. Default: pending; with --search: all.", show_default=False)
    ] = None,
    search: Annotated[str | None, typer.Option("--search", "-s", help="Any part of the id.", metavar="TEXT")] = None,
    refused: Annotated[
        bool, typer.Option("--refused", help="As --state refused: jobs whose event the broker did not take.")
    ] = False,
    topic: Topic = None,
    label: Label = None,
    owner: Annotated[str | None, typer.Option(help="The AMQP user to whom the jobs belong.", metavar="USER")] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = DEFAULT_LIMIT,
    after: Annotated[
        str | None,
        typer.Option(help="Behind this row: its moment and id, as the list before printed them.", metavar="MOMENT/ID"),
    ] = None,
    watch: Watch = False,
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """List jobs: the next to ring first; of those that ended, the last to end first; all of them by id. `--from` and
    `--to` bound that moment. With `--label`, jobs that have not ended are listed by id.

    Examples:

    duebell list --search 42

    duebell list --topic invoices --to +24h

    duebell list --label team=billing --label env=production

    duebell list --state cancelled --from -7d --json
    """
    chosen = JobState.REFUSED if refused else state or (JobState.ALL if search else JobState.PENDING)
    options = {"--state": chosen.value, "--search": search, "--topic": topic, "--owner": owner,
               "--from": since, "--to": until,
               "--limit": None if limit == DEFAULT_LIMIT else str(limit)}  # fmt: skip

    async def look(out: Output) -> None:
        if refused and state is not None:
            raise BadUsage("--refused: is a state of its own, and goes without --state")
        wanted = Wanted(
            chosen,
            search or None,
            topic,
            moment("--from", since),
            moment("--to", until),
            labels_of("--label", label),
            owner,
        )
        async with Stores.from_environment().database() as connection:
            page = await _read(connection, wanted, limit, _cursor(after))
            count = await count_jobs(connection, wanted) if page.next and not out.as_json and not watch else None
        if out.as_json:
            out.json([asdict(job) for job in page.jobs])
        else:
            rows = [
                {**asdict(job), "schedule": describe_rule(job), "rang": job.sequence, "labels": in_a_line(job.labels)}
                for job in page.jobs
            ]
            out.table(_columns(chosen, has_labels=any(job.labels for job in page.jobs)), rows)
            out.say(_summary(chosen, page, count))
        if page.next is not None:
            out.suggest(next_command(options, page.next, label or ()), "The next: ")

    run(show(look, as_json, timezone, watch=watch))


def _cursor(text: str | None) -> Cursor | None:
    try:
        return None if text is None else Cursor.parse(text)
    except ValueError as error:
        raise BadUsage(f"--after: {error}") from None


async def _read(connection: Connection, wanted: Wanted, limit: int, after: Cursor | None) -> Page:
    """Read on until the page is full, the end is reached, or SEARCH_SECONDS are over."""
    deadline = asyncio.get_running_loop().time() + SEARCH_SECONDS
    page = await list_jobs(connection, wanted, limit, after)
    while page.next and len(page.jobs) < limit and asyncio.get_running_loop().time() < deadline:
        more = await list_jobs(connection, wanted, limit - len(page.jobs), page.next)
        page = Page(page.jobs + more.jobs, more.next)
    return page


def in_a_line(labels: Mapping[str, str] | None) -> str | None:
    return ", ".join(f"{key}={value}" for key, value in labels.items()) if labels else None


def describe_rule(job: ListedJob) -> str:
    if job.every_seconds:
        return f"every {job.every_seconds} s"
    return job.rrule or job.cron or "once"


def _columns(state: JobState, *, has_labels: bool) -> Sequence[Column]:
    when = Column("moment", heading=_MOMENTS[state])
    labels = [Column("labels", rank=4, wraps=24)] if has_labels else []
    further = (Column("rang", rank=2), *labels, Column("owner", rank=5), Column("revision", rank=6))
    if state is JobState.REFUSED:
        return (
            Column("id"),
            Column("topic"),
            Column("next_run_at", rank=1, heading="due"),
            when,
            Column("refusals", rank=1),
            *further,
        )
    return (
        Column("id"),
        *([Column("status")] if state is JobState.ALL else []),
        when,
        Column("schedule", rank=1, wraps=16),
        Column("topic", rank=3),
        *further,
    )


def _summary(state: JobState, page: Page, count: Count | None) -> str:
    kind = "" if state is JobState.ALL else f" {state.value}"
    shown = amount(len(page.jobs), f"{kind} job".strip(), f"{kind} jobs".strip())
    if count is None:
        return shown
    at_least = " at least" if count.more and count.jobs < MAX_COUNT else ""
    return f"{len(page.jobs):,} of{at_least} {amount(count.jobs, f'{kind} job'.strip(), f'{kind} jobs'.strip())}"


def next_command(options: Mapping[str, str | None], after: Cursor, labels: Sequence[str] = ()) -> str:
    """Return the command line that lists what comes behind the cursor."""
    words = [word for option, value in options.items() if value is not None for word in (option, value)]
    words += [word for label in labels for word in ("--label", label)]
    return shlex.join(["duebell", "list", *words, "--after", str(after)])
