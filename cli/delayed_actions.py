"""`duebell delayed cancel` and `duebell delayed release`: one command for each chosen message, and its reply."""

from collections import Counter
from typing import Annotated, Any

import typer

from cli.command_batch import send_all
from cli.command_runner import run
from cli.errors import BadUsage, Failure, NoAnswer
from cli.output import Output, Yes, require_consent
from cli.selection import Limit, Since, Until, moment
from cli.stores import Stores
from shared.contract.delayed import exchange_named
from shared.contract.messages import CANCEL_TYPE, TRIGGER_TYPE, Outcome
from shared.contract.names import CANCEL_KEY, TRIGGER_KEY
from shared.reading.attention import amount
from shared.reading.delayed import ListedMessage, WantedMessages, find_messages, list_messages

SHOWN_BEFORE_QUESTION = 10

Exchange = Annotated[str | None, typer.Option(help="To this exchange; '(default)' is the default exchange.")]
RoutingKey = Annotated[str | None, typer.Option(help="With exactly this routing key.")]
Refused = Annotated[bool, typer.Option("--refused", help="Only those that the broker does not take.")]
Ids = Annotated[
    list[str] | None, typer.Argument(help="Ids as the list shows them, message_ids or names.", metavar="ID…")
]
Note = Annotated[str | None, typer.Option(help="Why, for people.")]
Wait = Annotated[float, typer.Option(help="Seconds to wait for the replies.", min=0.1, max=600)]


def wanted_messages(
    exchange: str | None, routing_key: str | None, since: str | None, until: str | None, *, refused: bool
) -> WantedMessages:
    """Return what the options choose. Raises BadUsage."""
    to = None if exchange is None else exchange_named(exchange)
    return WantedMessages(to, routing_key, moment("--from", since), moment("--to", until), refused)


def cancel(
    ids: Ids = None,
    *,
    exchange: Exchange = None,
    routing_key: RoutingKey = None,
    since: Since = None,
    until: Until = None,
    refused: Refused = False,
    limit: Limit = 1000,
    note: Note = None,
    wait: Wait = 10.0,
    yes: Yes = False,
) -> None:
    """Cancel delayed messages: they are not published. Say ids, or which; of those, at most --limit.

    Examples:

    duebell delayed cancel order-42 --yes

    duebell delayed cancel --exchange orders --routing-key invoice --to +1h --yes
    """

    async def work() -> None:
        wanted = wanted_messages(exchange, routing_key, since, until, refused=refused)
        noted = {} if note is None else {"note": note}
        await _act(CANCEL_TYPE, CANCEL_KEY, noted, ids or [], wanted, limit, wait, yes=yes)

    run(work())


def release(
    ids: Ids = None,
    *,
    exchange: Exchange = None,
    routing_key: RoutingKey = None,
    since: Since = None,
    until: Until = None,
    refused: Refused = False,
    limit: Limit = 1000,
    wait: Wait = 10.0,
    yes: Yes = False,
) -> None:
    """Publish delayed messages now, those that the broker did not take, too. Say ids, or which; of those, at most
    --limit.

    Examples:

    duebell delayed release order-42 --yes

    duebell delayed release --exchange orders --refused --yes
    """

    async def work() -> None:
        wanted = wanted_messages(exchange, routing_key, since, until, refused=refused)
        # A message is released once, however often: its trigger needs no name of its own.
        await _act(TRIGGER_TYPE, TRIGGER_KEY, {"trigger_id": "release"}, ids or [], wanted, limit, wait, yes=yes)

    run(work())


async def _act(
    type_: str,
    key: str,
    further: dict[str, Any],
    ids: list[str],
    wanted: WantedMessages,
    limit: int,
    wait: float,
    *,
    yes: bool,
) -> None:
    if bool(ids) == (wanted != WantedMessages()):
        raise BadUsage("say which: ids, or --exchange, --routing-key, --from, --to or --refused")
    out, stores = Output.of(), Stores.from_environment()
    chosen, more = await _choose(stores, ids, wanted, limit)
    doing = "cancels" if type_ == CANCEL_TYPE else "publishes now"
    for message in chosen[:SHOWN_BEFORE_QUESTION]:
        out.say(f"{message.id}  to {message.exchange}, due {out.time(message.due_at)}")
    if (left := len(chosen) - SHOWN_BEFORE_QUESTION) > 0:
        out.say(f"… and {left:,} more")
    require_consent(f"This {doing} {amount(len(chosen), 'delayed message', 'delayed messages')}", yes=yes)
    replies = await send_all(stores, type_, key, [{"id": message.id, **further} for message in chosen], wait)
    _tell(out, replies, more=more)


async def _choose(
    stores: Stores, ids: list[str], wanted: WantedMessages, limit: int
) -> tuple[list[ListedMessage], bool]:
    """Return the messages, and whether more match. Raises Failure if none does."""
    async with stores.database() as connection:
        if not ids:
            page = await list_messages(connection, wanted, limit)
            while page.next is not None and not page.messages:
                page = await list_messages(connection, wanted, limit, page.next)
            chosen, more = page.messages, page.next is not None
        else:
            found = {each: await find_messages(connection, each, limit) for each in ids}
            if missing := [each for each, messages in found.items() if not messages]:
                raise Failure(f"no delayed message {missing[0]!r} waits: see `duebell delayed list`")
            chosen = list({message.id: message for messages in found.values() for message in messages}.values())
            more = any(len(messages) == limit for messages in found.values())
    if not chosen:
        raise Failure("no delayed message matches")
    return chosen, more


def _tell(out: Output, replies: list[Any], *, more: bool) -> None:
    """Print how many commands had which outcome. Raises Failure unless all were carried out."""
    outcomes = Counter("unanswered" if reply is None else str(reply["outcome"]) for reply in replies)
    out.say(", ".join(f"{number:,} {outcome}" for outcome, number in outcomes.items()))
    if more:
        out.say("More match: run it again.")
    errors = Counter(error for reply in replies if reply is not None for error in reply["errors"])
    if outcomes[Outcome.REJECTED] or outcomes[Outcome.UNKNOWN]:
        raise Failure("; ".join(f"{error} ({number:,})" for error, number in errors.most_common(5)))
    if outcomes["unanswered"]:
        raise NoAnswer("some commands had no answer in time; they are safe in the inbox")
