"""`duebell why`: one sentence on why a job has or has not fired, then what happened to its id."""

import sys
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from cli.command_runner import run
from cli.errors import Failure
from cli.output import AsJson, Output, Timezone
from cli.stores import Stores
from cli.table_layout import Column
from shared.why.explain import explain
from shared.why.explanation import Cause
from shared.why.facts import Entry, Facts
from shared.why.listeners import ManagementError, read_listeners
from shared.why.sentences import who
from shared.why.store import read_facts
from shared.why.timeline import describe_entry

HISTORY_COLUMNS = (Column("at"), Column("what"), Column("says", wraps=28), Column("who", rank=1, wraps=16))


def why(
    id: Annotated[str, typer.Argument(help="The schedule's id.", metavar="ID")],  # noqa: A002
    last: Annotated[int, typer.Option("--last", "-n", help="How many lines of the history.", min=0, max=100)] = 20,
    timezone: Timezone = None,
    as_json: AsJson = None,
) -> None:
    """Say why a job has or has not fired, and what to do about it; then what happened to its id, the newest first.

    Where RABBITMQ_MANAGEMENT_URL names RabbitMQ's management interface, such as http://user:password@host:15672, it
    also names the queues that get the job's events.

    Example: duebell why invoice-42
    """

    async def work() -> None:
        out = Output.of(as_json, timezone)
        stores = Stores.from_environment()
        async with stores.database() as connection:
            facts = await read_facts(connection, id)
        facts = await _with_listeners(facts, stores)
        explanation = explain(facts, out.zone)
        if out.as_json:
            out.json({
                "id": id, "cause": explanation.cause, "says": explanation.says, "to_do": explanation.to_do or None,
                "job": facts.job and asdict(facts.job),
                "history": [_as_json(entry) for entry in facts.entries[:last]],
                "deliveries": [asdict(delivery) for delivery in facts.deliveries],
                "delayed": [asdict(message) for message in facts.delayed],
                "listeners": None if facts.listeners is None else [asdict(one) for one in facts.listeners],
            })  # fmt: skip
        else:
            out.say(explanation.line, "bold")
            if entries := facts.entries[:last]:
                out.table(HISTORY_COLUMNS, [_row(entry) for entry in entries], "What happened, the newest first")
        if explanation.cause is Cause.NEVER_HEARD:
            raise Failure(f"nothing is known of {id!r}")

    run(work())


def _as_json(entry: Entry) -> dict[str, Any]:
    return {**asdict(entry), "says": describe_entry(entry)}


def _row(entry: Entry) -> dict[str, Any]:
    sender = who(entry) if entry.by_user or entry.app_id or entry.operator else None
    return {"at": entry.at, "what": entry.what.replace("_", " "), "says": describe_entry(entry), "who": sender}


async def _with_listeners(facts: Facts, stores: Stores) -> Facts:
    if stores.management_url is None or facts.job is None:
        return facts
    amqp_url = stores.amqp_address.get(reads_only=True)
    try:
        listeners = await read_listeners(stores.management_url, amqp_url, stores.names, facts.job)
    except ManagementError as error:
        sys.stderr.write(f"RABBITMQ_MANAGEMENT_URL: {error}; going on without it\n")
        return facts
    return replace(facts, listeners=listeners)
