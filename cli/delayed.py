"""`duebell delayed`: list and show delayed messages; cli.delayed_actions cancels and releases them."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from cli.command_runner import run
from cli.delayed_actions import Exchange, Refused, RoutingKey, cancel, release, wanted_messages
from cli.errors import BadUsage, Failure
from cli.output import AsJson, Output, Timezone
from cli.selection import DEFAULT_LIMIT, Limit, Since, Until
from cli.stores import Stores
from cli.table_layout import Column
from shared.postgres.pool import Connection
from shared.reading.attention import amount
from shared.reading.delayed import ListedMessage, MessageCursor, find_messages, list_messages, read_content
from shared.reading.delayed_content import describe_content

MESSAGE_COLUMNS = (
    Column("id"),
    Column("exchange"),
    Column("routing_key", rank=1),
    Column("due_at", heading="due"),
    Column("message_id", rank=2),
    Column("name", rank=3),
    Column("bytes", rank=4),
    Column("retry_at", rank=2, heading="tried again"),
    Column("refused_because", rank=1, wraps=24, heading="refused because"),
)

app = typer.Typer(no_args_is_help=True, help="Messages that are held until they are due.")


@app.command("list")
def list_(
    exchange: Exchange = None,
    routing_key: RoutingKey = None,
    since: Since = None,
    until: Until = None,
    refused: Refused = False,
    limit: Limit = DEFAULT_LIMIT,
    after: Annotated[
        str | None, typer.Option(help="Behind this row, as the list before printed it.", metavar="MOMENT/NUMBER")
    ] = None,
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """List delayed messages, the next to be published first. `--from` and `--to` bound the moment when they are due.

    Examples:

    duebell delayed list --exchange orders --to +1h

    duebell delayed list --refused
    """
    options = {"--exchange": exchange, "--routing-key": routing_key, "--from": since, "--to": until,
               "--refused": "" if refused else None,
               "--limit": None if limit == DEFAULT_LIMIT else str(limit)}  # fmt: skip

    async def work() -> None:
        out, wanted = (
            Output.of(as_json, timezone),
            wanted_messages(exchange, routing_key, since, until, refused=refused),
        )
        async with Stores.from_environment().database() as connection:
            page = await list_messages(connection, wanted, limit, _cursor(after))
        if out.as_json:
            out.json([asdict(message) for message in page.messages])
        else:
            out.table(MESSAGE_COLUMNS, [asdict(message) for message in page.messages])
            out.say(amount(len(page.messages), "delayed message", "delayed messages"))
        if page.next is not None:
            out.suggest(_next_command(options, page.next), "The next: ")

    run(work())


@app.command()
def show(
    id: Annotated[str, typer.Argument(help="An id of the list, a message_id or a name.", metavar="ID")],  # noqa: A002
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """Show delayed messages whole: properties, headers and body.

    Example: duebell delayed show delayed#17
    """

    async def work() -> None:
        out = Output.of(as_json, timezone)
        async with Stores.from_environment().database() as connection:
            found = await find_messages(connection, id)
            whole = [await _whole(connection, message) for message in found]
        if not whole:
            raise Failure(f"no delayed message {id!r} waits: see `duebell why {shlex.quote(id)}`")
        if out.as_json:
            out.json(whole)
            return
        for number, message in enumerate(whole):
            if number:
                out.say("")
            out.sheet(message)

    run(work())


async def _whole(connection: Connection, message: ListedMessage) -> dict[str, Any]:
    content = await read_content(connection, message)
    described = {} if content is None else describe_content(content.header, content.body)
    return {**asdict(message), **described}


def _cursor(text: str | None) -> MessageCursor | None:
    try:
        return None if text is None else MessageCursor.parse(text)
    except ValueError as error:
        raise BadUsage(f"--after: {error}") from None


def _next_command(options: Mapping[str, str | None], after: MessageCursor) -> str:
    """Return the command line that lists what comes behind the cursor."""
    words = [word for option, value in options.items() if value is not None for word in (option, value) if word]
    return shlex.join(["duebell", "delayed", "list", *words, "--after", str(after)])


app.command()(cancel)
app.command()(release)
