"""`duebell parked`: list and show parked messages, send them again, or drop them."""

from typing import Annotated

import typer

from cli.command_runner import run
from cli.errors import BadUsage, Failure
from cli.output import AsJson, Output, Timezone, Yes, require_consent
from cli.parked_queue import MAX_PARKED_MESSAGES, Parked, Parking, choose, parking
from cli.stores import Stores
from cli.table_layout import Column
from shared.amqp.message import PublishResult

PUBLISH_TIMEOUT = 10.0
PARKED_BATCH_MESSAGES = 500
COLUMNS = (
    Column("id"),
    Column("parked_at", rank=1),
    Column("parked_by", rank=3),
    Column("type", rank=2),
    Column("job"),
    Column("reason", wraps=24),
)

app = typer.Typer(no_args_is_help=True, help="Commands and events that could not be understood.")

Ids = Annotated[list[str] | None, typer.Argument(help="Ids, or the beginnings of them.", metavar="ID…")]
All = Annotated[bool, typer.Option("--all", help="All of them.")]


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(help="At most so many, the oldest first.", min=1, max=MAX_PARKED_MESSAGES)] = 50,
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """List what is parked, with the reason.

    Example: duebell parked list --limit 200
    """

    async def work() -> None:
        out = Output.of(as_json, timezone)
        async with parking(Stores.from_environment(), limit) as place:
            found = [one.summary() for one in await place.look(limit)]
        if out.as_json:
            out.json(found)
            return
        rows = [{**one, "id": one["id"][:12]} for one in found]
        out.table(COLUMNS, rows)
        out.say(f"{len(found)} parked" + (f", and maybe more: --limit is {limit}" if len(found) == limit else ""))

    run(work())


@app.command()
def show(
    id: Annotated[str, typer.Argument(help="Its id, or the beginning of it.", metavar="ID")],  # noqa: A002
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """Show one parked message whole.

    Example: duebell parked show 3f2a
    """

    async def work() -> None:
        out = Output.of(as_json, timezone)
        async with parking(Stores.from_environment(), MAX_PARKED_MESSAGES) as place:
            details = choose(await place.look(MAX_PARKED_MESSAGES), [id])[0].details()
        if out.as_json:
            out.json(details)
        else:
            out.sheet(details)

    run(work())


@app.command()
def requeue(ids: Ids = None, *, every: All = False, yes: Yes = False) -> None:
    """Send parked messages again to where they came from, say after an upgrade or a fix.

    Examples:

    duebell parked requeue 3f2a 81bc

    duebell parked requeue --all --yes
    """
    run(_work_through(ids, every=every, yes=yes, doing="sends again", done="sent again", send=True))


@app.command()
def drop(ids: Ids = None, *, every: All = False, yes: Yes = False) -> None:
    """Drop parked messages for good.

    Example: duebell parked drop 3f2a --yes
    """
    run(_work_through(ids, every=every, yes=yes, doing="drops for good", done="dropped", send=False))


async def _work_through(ids: list[str] | None, *, every: bool, yes: bool, doing: str, done: str, send: bool) -> None:
    if bool(ids) == every:
        raise BadUsage("say which: ids, or --all")
    out, stores = Output.of(), Stores.from_environment()
    async with parking(stores, MAX_PARKED_MESSAGES, sends=send) as place:
        found = await place.look(MAX_PARKED_MESSAGES)
        chosen = found if every else choose(found, ids or [])
        if not chosen:
            out.say("nothing is parked")
            return
        for one in chosen[:10]:
            out.say(f"{one.id[:12]}  {one.reason}")
        more = f" (and {len(chosen) - 10} more)" if len(chosen) > 10 else ""
        require_consent(f"This {doing} {len(chosen)} parked messages{more}", yes=yes)
        finished = 0
        for first in range(0, len(chosen), PARKED_BATCH_MESSAGES):
            finished += await _finish(place, chosen[first : first + PARKED_BATCH_MESSAGES], stores, send=send)
    out.say(f"{finished} {done}")
    if finished < len(chosen):
        raise Failure(f"{len(chosen) - finished} stay parked: the broker did not take them")


async def _finish(place: Parking, chosen: list[Parked], stores: Stores, *, send: bool) -> int:
    """Send copies if `send`, then acknowledge the confirmed ones: a crash between the two sends a message twice."""
    if send:
        results = await place.publisher.publish([one.original_message(stores.names) for one in chosen], PUBLISH_TIMEOUT)
        chosen = [one for one, result in zip(chosen, results, strict=True) if result is PublishResult.CONFIRMED]
    await place.inbox.acknowledge_only([one.message for one in chosen])
    return len(chosen)
