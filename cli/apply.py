"""`duebell apply`: schedules as a file says, and only what differs is changed."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from cli.command_client import Ask, a_conversation
from cli.command_runner import run
from cli.differences import Action, Plan, plan_changes
from cli.errors import BadUsage, Failure
from cli.job_list import in_a_line
from cli.output import AsJson, Output, Timezone, Yes, require_consent
from cli.schedule_file import read_file
from cli.selection import labels_of
from cli.stores import Stores
from shared.contract.messages import CANCEL_TYPE, REQUEST_TYPE, Outcome
from shared.contract.names import CANCEL_KEY, REQUEST_KEY
from shared.postgres.pool import Connection
from shared.reading import jobs
from shared.reading.stored_requests import read_requests

SIGNS = {Action.CREATE: "+", Action.CHANGE: "~", Action.CANCEL: "-"}
STYLES = {Action.CREATE: "green", Action.CHANGE: "yellow", Action.CANCEL: "red"}
PRUNED_A_PAGE = 1_000


def apply(
    file: Annotated[str, typer.Option("--file", "-f", help="YAML or JSON; - for stdin.", metavar="FILE")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what differs, and change nothing.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Cancel jobs that have the --label, and are not in the file.")
    ] = False,
    label: Annotated[list[str] | None, typer.Option(help="With --prune: KEY=VALUE; may be repeated.")] = None,
    own: Annotated[bool, typer.Option("--own", help="Make the user of AMQP_URL the owner of new jobs.")] = False,
    note: Annotated[str | None, typer.Option(help="Why, for people: of what is cancelled.")] = None,
    yes: Yes = False,
    wait: Annotated[float, typer.Option(help="Seconds to wait for each reply.", min=0.1, max=600)] = 10.0,
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """Make schedules as FILE says: create what is missing, and change what differs. Nothing else is touched. With
    `--prune`, jobs with the label that are not in the file are cancelled.

    Exit status: 0 all is as the file says; 1 something was refused, or with --dry-run, something differs; 2 the file is
    wrong, and nothing was changed.

    Example: duebell apply -f schedules.yaml --prune --label team=billing --dry-run
    """

    async def work() -> None:
        labels = labels_of("--label", label)
        if prune != bool(labels):
            raise BadUsage("--prune and --label go together: of which jobs may be cancelled")
        out, stores = Output.of(as_json, timezone), Stores.from_environment()
        wanted, now = read_file(file, stores.max_payload_bytes), datetime.now(UTC)
        async with stores.database() as connection:
            stored = await read_requests(connection, [one.id for one in wanted])
            to_prune = await _open_jobs(connection, labels) if prune else {}
        plan = plan_changes(wanted, stored, to_prune, now)
        refused: dict[str, list[str]] = {}
        if not out.as_json:
            _show(out, plan)
        if not dry_run and plan.changes:
            if cancels := plan.count(Action.CANCEL):
                require_consent(f"This cancels {cancels} of {len(plan.changes)} schedules", yes=yes)
            async with a_conversation(stores) as ask:
                refused = await _carry_out(ask, plan, wait, note, own=own)
        if out.as_json:
            out.json(_as_json(plan, refused, dry_run=dry_run))
        else:
            out.say(_summary(plan, refused, dry_run=dry_run))
        if refused:
            first, errors = next(iter(refused.items()))
            raise Failure(f"{len(refused)} refused; {first}: {'; '.join(errors)}")
        if dry_run and plan.changes:
            raise typer.Exit(1)

    run(work())


async def _open_jobs(connection: Connection, labels: Mapping[str, str]) -> dict[str, int]:
    """Return the open jobs that have the labels, with the revision of each."""
    revisions: dict[str, int] = {}
    for state in (jobs.JobState.PENDING, jobs.JobState.PAUSED):
        wanted, after = jobs.Wanted(state, labels=labels), None
        while True:
            page = await jobs.list_jobs(connection, wanted, PRUNED_A_PAGE, after)
            revisions |= {job.id: job.revision for job in page.jobs}
            if (after := page.next) is None:
                break
    return revisions


async def _carry_out(ask: Ask, plan: Plan, wait: float, note: str | None, *, own: bool) -> dict[str, list[str]]:
    """Send the changes one after the other. Return the errors of those that were refused."""
    refused: dict[str, list[str]] = {}
    for change in plan.changes:
        if change.action is Action.CANCEL:
            content = {**change.content, **({"note": note} if note else {})}
            reply = await ask(CANCEL_TYPE, CANCEL_KEY, content, wait, own=True)
        else:
            reply = await ask(REQUEST_TYPE, REQUEST_KEY, dict(change.content), wait, own=own)
        if reply["outcome"] == Outcome.REJECTED or (reply["outcome"] == Outcome.DUPLICATE and reply["errors"]):
            refused[change.id] = reply["errors"]
    return refused


def _show(out: Output, plan: Plan) -> None:
    for change in plan.changes:
        out.say(f"{SIGNS[change.action]} {change.id}", STYLES[change.action])
        for name, (old, new) in change.fields.items():
            out.say(f"    {name}: {_value(old)} → {_value(new)}")


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return in_a_line(value) or "none"
    return "none" if value is None else str(value)


def _summary(plan: Plan, refused: Mapping[str, list[str]], *, dry_run: bool) -> str:
    would = "to " if dry_run else ""
    parts = [
        f"{plan.count(action)} {would}{action.value if dry_run else DONE[action]}"
        for action in Action
        if plan.count(action)
    ]
    counts = ", ".join([*parts, f"{plan.unchanged} as they should be"])
    return f"{counts}; {len(refused)} refused." if refused else f"{counts}."


DONE = {Action.CREATE: "created", Action.CHANGE: "changed", Action.CANCEL: "cancelled"}


def _as_json(plan: Plan, refused: Mapping[str, list[str]], *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "unchanged": plan.unchanged,
        "changes": [
            {
                "id": change.id,
                "action": change.action.value,
                "fields": {name: {"from": old, "to": new} for name, (old, new) in change.fields.items()},
                "errors": refused.get(change.id, []),
            }
            for change in plan.changes
        ],
    }
