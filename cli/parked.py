"""`duebell parked`: list and show parked messages, send them again, or drop them."""

from typing import Annotated

import typer

from cli.command_runner import run
from cli.kept_commands import All, Ids, OfJob, OneId, drop_messages, list_messages, send_again, show_message
from cli.output import AsJson, Output, Timezone, Yes
from cli.table_layout import Column
from shared.kept.parked import PARKED
from shared.kept.queue import MAX_KEPT_MESSAGES

PARKED_COLUMNS = (
    Column("id"),
    Column("parked_at", rank=1),
    Column("parked_by", rank=3),
    Column("type", rank=2),
    Column("job"),
    Column("reason", wraps=24),
)

app = typer.Typer(no_args_is_help=True, help="Commands and events that could not be understood.")


@app.command("list")
def list_(
    job: OfJob = None,
    limit: Annotated[int, typer.Option(help="At most so many.", min=1, max=MAX_KEPT_MESSAGES)] = 50,
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """List what is parked, the newest first, with the reason.

    Examples:

    duebell parked list

    duebell parked list --job invoice-42
    """

    async def work() -> None:
        await list_messages(Output.of(as_json, timezone), PARKED, PARKED_COLUMNS, job, limit)

    run(work())


@app.command()
def show(id: OneId, timezone: Timezone = None, as_json: AsJson = None) -> None:  # noqa: A002
    """Show one parked message whole.

    Example: duebell parked show 3f2a
    """

    async def work() -> None:
        await show_message(Output.of(as_json, timezone), PARKED, id)

    run(work())


@app.command("requeue", hidden=True)  # its name in 0.1
@app.command()
def resend(ids: Ids = None, *, job: OfJob = None, every: All = False, yes: Yes = False) -> None:
    """Send parked messages again to where they came from, say after an upgrade or a fix.

    Examples:

    duebell parked resend 3f2a 81bc

    duebell parked resend --all --yes
    """
    run(send_again(PARKED, ids, job, every=every, yes=yes, why_not=lambda _: "the broker did not take them"))


@app.command()
def drop(ids: Ids = None, *, job: OfJob = None, every: All = False, yes: Yes = False) -> None:
    """Drop parked messages for good.

    Example: duebell parked drop 3f2a --yes
    """
    run(drop_messages(PARKED, ids, job, every=every, yes=yes))
