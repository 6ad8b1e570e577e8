"""`duebell unrouted`: list and show events that no queue was bound for, send them again, or drop them."""

from collections import Counter
from typing import Annotated

import typer

from cli.command_runner import run
from cli.kept_commands import All, Ids, OfJob, OneId, drop_messages, list_messages, send_again, show_message
from cli.output import AsJson, Output, Timezone, Yes
from cli.table_layout import Column
from shared.kept.message import KeptMessage
from shared.kept.queue import MAX_KEPT_MESSAGES
from shared.kept.unrouted import UNROUTED

UNROUTED_COLUMNS = (
    Column("id"),
    Column("job"),
    Column("routing_key"),
    Column("due_at", rank=2),
    Column("published_at", rank=1),
)
MAX_KEYS_NAMED = 10

app = typer.Typer(no_args_is_help=True, help="Events that were published while no queue was bound for them.")


@app.command("list")
def list_(
    job: OfJob = None,
    limit: Annotated[int, typer.Option(help="At most so many.", min=1, max=MAX_KEPT_MESSAGES)] = 50,
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """List unrouted events, the newest first.

    Examples:

    duebell unrouted list

    duebell unrouted list --job invoice-42
    """

    async def work() -> None:
        out = Output.of(as_json, timezone)
        shown = await list_messages(out, UNROUTED, UNROUTED_COLUMNS, job, limit)
        if shown and not out.as_json:
            _say_keys(out, shown)

    run(work())


def _say_keys(out: Output, shown: list[KeptMessage]) -> None:
    """Say for which routing keys no queue was bound: a topic that is misspelt stands out."""
    keys = Counter(str(one.summary()["routing_key"]) for one in shown).most_common(MAX_KEYS_NAMED)
    out.say("No queue was bound for " + ", ".join(f"{key} ({number:,})" for key, number in keys))
    out.suggest("duebell unrouted resend --all", "Bind one, then: ")


@app.command()
def show(id: OneId, timezone: Timezone = None, as_json: AsJson = None) -> None:  # noqa: A002
    """Show one unrouted event whole.

    Example: duebell unrouted show 3f2a
    """

    async def work() -> None:
        await show_message(Output.of(as_json, timezone), UNROUTED, id)

    run(work())


@app.command()
def resend(ids: Ids = None, *, job: OfJob = None, every: All = False, yes: Yes = False) -> None:
    """Publish unrouted events again, as they were. Those that still no queue is bound for stay.

    Examples:

    duebell unrouted resend --job invoice-42

    duebell unrouted resend --all --yes
    """
    run(send_again(UNROUTED, ids, job, every=every, yes=yes, why_not=_why_not))


def _why_not(left: KeptMessage) -> str:
    key = left.summary()["routing_key"]
    return f"still no queue is bound for {key}, or the broker did not take it"


@app.command()
def drop(ids: Ids = None, *, job: OfJob = None, every: All = False, yes: Yes = False) -> None:
    """Drop unrouted events for good.

    Example: duebell unrouted drop --all --yes
    """
    run(drop_messages(UNROUTED, ids, job, every=every, yes=yes))
