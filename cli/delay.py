"""`duebell delay`: open, close and list delay exchanges."""

import shlex
from dataclasses import asdict
from typing import Annotated

import typer
from aiormq.exceptions import ChannelNotFoundEntity

from cli.command_runner import run
from cli.errors import BadUsage
from cli.output import AsJson, Output, Timezone, Yes, require_consent
from cli.stores import Stores
from cli.table_layout import Column
from shared.amqp.topology import declare_delay_exchange, declare_passively, delete_delay_exchange
from shared.contract.delayed import DEFAULT_EXCHANGE, exchange_label, read_target
from shared.postgres.delay_exchanges import close_exchange, open_exchanges
from shared.reading.attention import amount
from shared.reading.delay_exchanges import MAX_COUNTED_OF_EXCHANGE, list_exchanges

TO_WRITE_DOWN = "to write into delay_exchanges"
EXCHANGE_COLUMNS = (
    Column("exchange"),
    Column("waiting"),
    Column("refused", rank=2),
    Column("next_due_at", rank=1, heading="next due"),
    Column("opened_at", rank=3, heading="opened"),
    Column("closed_at", rank=3, heading="closed"),
)

app = typer.Typer(no_args_is_help=True, help="Exchanges whose messages are held until they are due.")

Exchange = Annotated[
    str, typer.Argument(help=f"The exchange that gets the messages; '{DEFAULT_EXCHANGE}': the default exchange.")
]


@app.command("open")
def open_(exchange: Exchange) -> None:
    """Open the exchange `delay.EXCHANGE`. What is published there is held, and published to EXCHANGE when it is due.

    Examples:

    duebell delay open orders

    duebell delay open '(default)'
    """

    async def work() -> None:
        out, stores, target = Output.of(), Stores.from_environment(), _target(exchange)
        delay = stores.names.delay_exchange(target)
        needs = f"to configure and read {delay}, and to write to {stores.names.delayed}"
        async with stores.broker(needs) as connection, connection.channel() as channel:
            await declare_passively(channel, stores.names.delayed, "queue")
            await declare_delay_exchange(channel, stores.names, target)
        async with stores.database(TO_WRITE_DOWN) as database:
            await open_exchanges(database, [target])
        out.say(f"{delay} is open: what is published there goes to {exchange_label(target)} when it is due")
        if target and not await _is_there(stores, target):
            out.say(f"The exchange {target} is not there yet. Messages wait for it.", "yellow")

    run(work())


@app.command()
def close(exchange: Exchange, *, yes: Yes = False) -> None:
    """Delete the exchange `delay.EXCHANGE`. What waits is published all the same; new messages are refused. An exchange
    that DELAY_EXCHANGES of the consumer names is opened again when the consumer starts.

    Example: duebell delay close orders --yes
    """

    async def work() -> None:
        out, stores, target = Output.of(), Stores.from_environment(), _target(exchange)
        delay = stores.names.delay_exchange(target)
        require_consent(f"This deletes the exchange {delay}", yes=yes)
        async with stores.broker(f"to configure {delay}") as connection, connection.channel() as channel:
            await delete_delay_exchange(channel, stores.names, target)
        async with stores.database(TO_WRITE_DOWN) as database:
            await close_exchange(database, target)
        out.say(f"{delay} is closed")
        out.suggest(f"duebell delayed list --exchange {shlex.quote(exchange_label(target))}", "What still waits: ")

    run(work())


@app.command("list")
def list_(timezone: Timezone = None, as_json: AsJson = None) -> None:
    """List delay exchanges, with how many messages wait.

    Example: duebell delay list
    """

    async def work() -> None:
        out, stores = Output.of(as_json, timezone), Stores.from_environment()
        async with stores.database() as database:
            found = [asdict(each) for each in await list_exchanges(database)]
        if out.as_json:
            out.json(found)
            return
        out.table(EXCHANGE_COLUMNS, found)
        out.say("no delay exchange" if not found else amount(len(found), "exchange", "exchanges"))
        if any(MAX_COUNTED_OF_EXCHANGE in (each["waiting"], each["refused"]) for each in found):
            out.say(f"{MAX_COUNTED_OF_EXCHANGE:,} means: or more")

    run(work())


def _target(text: str) -> str:
    try:
        return read_target(text)
    except ValueError as error:
        raise BadUsage(f"EXCHANGE: {error}") from None


async def _is_there(stores: Stores, exchange: str) -> bool:
    async with stores.broker(f"to look at the exchange {exchange}") as connection:
        try:
            async with connection.channel() as channel:
                await declare_passively(channel, exchange, "exchange")
        except ChannelNotFoundEntity:
            return False
    return True
