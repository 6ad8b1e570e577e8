"""`duebell bulk`: one action on all jobs that match, and how it goes."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any
from uuid import uuid4

import typer

from cli.command_client import send
from cli.command_runner import run
from cli.errors import BadUsage, Failure
from cli.job_list import in_a_line
from cli.output import AsJson, Output, Timezone, Yes, require_consent
from cli.selection import labels_of
from cli.stores import Stores
from cli.table_layout import Column
from shared.contract.messages import BULK_TYPE, BulkAction, Outcome
from shared.contract.names import BULK_KEY
from shared.reading.attention import amount
from shared.reading.bulks import MAX_BULKS, list_bulks, read_bulk

WAIT_SECONDS = 600.0
LISTED = 20
DONE_TO_JOBS = {
    BulkAction.PAUSE: "pauses",
    BulkAction.RESUME: "resumes",
    BulkAction.CANCEL: "cancels",
    BulkAction.TRIGGER: "triggers",
}
BULK_COLUMNS = (
    Column("id"),
    Column("action"),
    Column("jobs", wraps=24),
    Column("matched"),
    Column("changed"),
    Column("requested_at", rank=2),
    Column("finished_at", rank=1),
    Column("operator", rank=3),
    Column("note", rank=4, wraps=16),
)

app = typer.Typer(
    no_args_is_help=True,
    help="Pause, resume, cancel or trigger all jobs that match labels, a topic and the beginning of an id, and look at "
    "how it goes.",
)


def _acting(action: BulkAction) -> Callable[..., None]:
    def act(
        *,
        label: Annotated[list[str] | None, typer.Option(help="KEY=VALUE; may be repeated.")] = None,
        topic: Annotated[str | None, typer.Option(help="This topic and those below it.")] = None,
        id_prefix: Annotated[str | None, typer.Option(help="How the ids begin.")] = None,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing, and count.")] = False,
        note: Annotated[str | None, typer.Option(help="Why, for people.")] = None,
        bulk_id: Annotated[
            str | None, typer.Option("--id", help="Makes it safe to repeat; without it, a new one is made.")
        ] = None,
        yes: Yes = False,
        wait: Annotated[float, typer.Option(help="Seconds to wait for the end.", min=0.1, max=3600)] = WAIT_SECONDS,
        timezone: Timezone = None,
        as_json: AsJson = None,
    ) -> None:
        async def work() -> None:
            given = {"labels": labels_of("--label", label) or None, "topic": topic, "id_prefix": id_prefix}
            selector = {name: value for name, value in given.items() if value is not None}
            if not selector:
                raise BadUsage("say which jobs: --label, --topic or --id-prefix")
            out = Output.of(as_json, timezone)
            content: dict[str, Any] = {"id": bulk_id or uuid4().hex, "action": action.value, "selector": selector}
            if not dry_run and not yes:
                counted = await _send({**content, "id": uuid4().hex, "dry_run": True}, wait)
                numbers = counted["bulk"]
                require_consent(f"This {DONE_TO_JOBS[action]} {amount(numbers['changed'], 'job', 'jobs')}", yes=False)
            further = {"dry_run": dry_run or None, "note": note}
            reply = await _send({**content, **{name: value for name, value in further.items() if value}}, wait)
            bulk = {"id": content["id"], **reply["bulk"]}
            if out.as_json:
                out.json(bulk)
            else:
                out.say(_in_words(action, bulk))

        run(work())

    act.__doc__ = f"""{action.value.capitalize()} all jobs that match, and wait until it is done. Without
    `--yes`, they are counted first.

    Example: duebell bulk {action.value} --label team=billing --dry-run
    """
    return act


for each in BulkAction:
    app.command(each.value)(_acting(each))


@app.command()
def show(
    id: Annotated[str | None, typer.Argument(help="The bulk's id.", metavar="[ID]")] = None,  # noqa: A002
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """Show how far a bulk has come; without ID, those that go on, and those that ended last.

    Example: duebell bulk show holidays-2026
    """

    async def work() -> None:
        out = Output.of(as_json, timezone)
        async with Stores.from_environment().database() as connection:
            if id is None:
                found = await list_bulks(connection, MAX_BULKS if out.as_json else LISTED)
                if out.as_json:
                    out.json([asdict(one) for one in found])
                    return
                rows = [
                    {**asdict(one), "jobs": _selected(asdict(one)), "action": _action(asdict(one))} for one in found
                ]
                out.table(BULK_COLUMNS, rows)
                out.say(amount(len(found), "bulk", "bulks"))
                return
            bulk = await read_bulk(connection, id)
        if bulk is None:
            raise Failure(f"there is no bulk {id!r}")
        if out.as_json:
            out.json(asdict(bulk))
        else:
            out.sheet({**asdict(bulk), "labels": in_a_line(bulk.labels)})

    run(work())


async def _send(content: dict[str, Any], wait: float) -> dict[str, Any]:
    reply: dict[str, Any] = await send(Stores.from_environment(), BULK_TYPE, BULK_KEY, content, wait, own=True)
    if reply["outcome"] == Outcome.REJECTED or reply["errors"] or "bulk" not in reply:
        raise Failure(f"the bulk was {reply['outcome']}: {'; '.join(reply['errors'])}")
    return reply


def _in_words(action: BulkAction, bulk: dict[str, Any]) -> str:
    unchanged = bulk["matched"] - bulk["changed"]
    if bulk["dry_run"]:
        says = f"This {DONE_TO_JOBS[action]} {amount(bulk['changed'], 'job', 'jobs')}."
    else:
        says = f"{amount(bulk['changed'], 'job', 'jobs')} changed."
    return (
        f"{says} {amount(unchanged, 'more', 'more')} matched and {'need' if unchanged > 1 else 'needs'} no change."
        if unchanged
        else says
    )


def _action(bulk: dict[str, Any]) -> str:
    return f"{bulk['action']}, dry run" if bulk["dry_run"] else str(bulk["action"])


def _selected(bulk: dict[str, Any]) -> str:
    parts = (
        in_a_line(bulk["labels"]),
        bulk["topic"] and f"topic {bulk['topic']}",
        bulk["id_prefix"] and f"id {bulk['id_prefix']}…",
    )
    return ", ".join(part for part in parts if part)
