"""What `duebell parked` and `duebell unrouted` have in common: to list, to show, to send again and to drop."""

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from cli.errors import BadUsage, Failure
from cli.kept_queue import choose, kept_queue
from cli.output import Output, require_consent
from cli.stores import Stores
from cli.table_layout import Column
from shared.kept.message import KeptMessage, Kind
from shared.kept.queue import Found, KeptQueue

BATCH_MESSAGES = 500
SHOWN_BEFORE_QUESTION = 10

Ids = Annotated[list[str] | None, typer.Argument(help="Ids, or the beginnings of them.", metavar="ID…")]
OfJob = Annotated[str | None, typer.Option(help="Of this job.", metavar="ID")]
All = Annotated[bool, typer.Option("--all", help="All of them.")]
OneId = Annotated[str, typer.Argument(help="Its id, or the beginning of it.", metavar="ID")]


async def list_messages(
    out: Output, kind: Kind, columns: Sequence[Column], job: str | None, limit: int
) -> list[KeptMessage]:
    """Print the newest first, and return those that were printed."""
    async with kept_queue(Stores.from_environment(), kind) as queue:
        found = await queue.look()
    matching = [one for one in reversed(found.messages) if job is None or one.job == job]
    shown = matching[:limit]
    if out.as_json:
        out.json([one.summary() for one in shown])
    else:
        out.table(columns, [{**one.summary(), "id": one.id[:12]} for one in shown])
    of_job = "" if job is None else f" of {job}"
    of_all = f"{len(shown):,} of {len(matching):,}" if len(shown) < len(matching) else f"{len(shown):,}"
    if not out.as_json or len(shown) < len(matching) or not found.all_seen:
        out.remark(f"{of_all} {kind.command}{of_job}{_unseen(found)}")
    return shown


def _unseen(found: Found) -> str:
    return "" if found.all_seen else f"; only the oldest {len(found.messages):,} messages were looked at"


async def show_message(out: Output, kind: Kind, beginning: str) -> None:
    async with kept_queue(Stores.from_environment(), kind) as queue:
        details = choose(await queue.look(), kind, [beginning])[0].details()
    if out.as_json:
        out.json(details)
    else:
        out.sheet(details)


async def send_again(
    kind: Kind,
    ids: list[str] | None,
    job: str | None,
    *,
    every: bool,
    yes: bool,
    why_not: Callable[[KeptMessage], str],
) -> None:
    """Send the chosen messages again. Raises Failure with `why_not` of the first one that the broker did not take."""
    _require_choice(ids, job, every=every)
    out = Output.of()
    async with kept_queue(Stores.from_environment(), kind, sends=True) as queue:
        chosen = await _chosen(queue, ids, job, every=every)
        _ask(out, kind, chosen, "sends again", yes=yes)
        left: list[KeptMessage] = []
        for first in range(0, len(chosen), BATCH_MESSAGES):
            left += await queue.send_again(chosen[first : first + BATCH_MESSAGES])
    out.say(f"{len(chosen) - len(left):,} sent again")
    if left:
        raise Failure(f"{len(left):,} stay {kind.command}: {why_not(left[0])}")


async def drop_messages(kind: Kind, ids: list[str] | None, job: str | None, *, every: bool, yes: bool) -> None:
    _require_choice(ids, job, every=every)
    out = Output.of()
    async with kept_queue(Stores.from_environment(), kind) as queue:
        chosen = await _chosen(queue, ids, job, every=every)
        _ask(out, kind, chosen, "drops for good", yes=yes)
        await queue.drop(chosen)
    out.say(f"{len(chosen):,} dropped")


def _require_choice(ids: list[str] | None, job: str | None, *, every: bool) -> None:
    if [bool(ids), job is not None, every].count(True) != 1:
        raise BadUsage("say which: ids, --job or --all")


async def _chosen(queue: KeptQueue, ids: list[str] | None, job: str | None, *, every: bool) -> list[KeptMessage]:
    found = await queue.look()
    if ids:
        return choose(found, queue.kind, ids)
    chosen = [one for one in found.messages if every or one.job == job]
    if not chosen:
        of_job = "" if every else f" of the job {job!r}"
        raise Failure(f"nothing{of_job} is {queue.kind.command}{_unseen(found)}")
    return chosen


def _ask(out: Output, kind: Kind, chosen: Sequence[KeptMessage], doing: str, *, yes: bool) -> None:
    for one in chosen[:SHOWN_BEFORE_QUESTION]:
        out.say(f"{one.id[:12]}  {one.reason}")
    if (more := len(chosen) - SHOWN_BEFORE_QUESTION) > 0:
        out.say(f"… and {more:,} more")
    what = "message" if len(chosen) == 1 else "messages"
    require_consent(f"This {doing} {len(chosen):,} {kind.command} {what}", yes=yes)
