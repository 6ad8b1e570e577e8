"""`duebell status`: backlog, lateness, queue depths, running services, and a list of what needs attention."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import typer
from aiormq.exceptions import ChannelNotFoundEntity

from cli.command_runner import run
from cli.errors import Failure
from cli.output import AsJson, Output, Timezone
from cli.stores import Stores
from cli.table_layout import Column
from cli.watching import Watch, show
from shared.reading.attention import SERVICES, Attention, amount, what_needs_attention
from shared.reading.overview import Instance, Overview, read_overview
from shared.reading.times import describe_distance, describe_duration

QUEUE_TIMEOUT = 5.0
QUEUE_COLUMNS = (Column("queue"), Column("messages"), Column("consumers"))
SERVICE_COLUMNS = (
    Column("service"),
    Column("state"),
    Column("last_seen"),
    Column("host", rank=1),
    Column("started_at", rank=2, heading="started"),
    Column("version", rank=3),
)


@dataclass(frozen=True, slots=True)
class Queue:
    queue: str
    messages: int | None
    consumers: int | None


def status(watch: Watch = False, timezone: Timezone = None, as_json: AsJson = None) -> None:
    """Show backlog, lateness, queue depths, the services, and what needs attention. Exits with 1 if something does.

    Examples:

    duebell status --watch

    duebell status --json
    """

    async def look(out: Output) -> None:
        stores = Stores.from_environment()
        async with stores.database() as connection:
            seen = await read_overview(connection)
        queues = await _from_broker(stores)
        attention = what_needs_attention(seen, {role: queue.messages for role, queue in queues.items()})
        problems = [one for one in attention if one.is_problem]
        if out.as_json:
            out.json(as_object(seen, queues, attention))
        else:
            _print(out, seen, queues, attention)
        if problems and not watch:
            raise Failure("; ".join(f"{one.text}: {one.next}" for one in problems)) if out.as_json else typer.Exit(1)

    run(show(look, as_json, timezone, watch=watch))


async def _from_broker(stores: Stores) -> dict[str, Queue]:
    names = stores.names
    roles = {
        "inbox": names.inbox,
        "delayed": names.delayed,
        "deliveries": names.deliveries,
        "parked": names.parked,
        "unrouted": names.unrouted,
    }
    queues = {}
    async with stores.broker() as connection:
        for role, name in roles.items():
            try:
                async with connection.channel() as channel:
                    found = await channel.declare_queue(name, passive=True, timeout=QUEUE_TIMEOUT)
                    counts = found.declaration_result
                    queues[role] = Queue(name, counts.message_count, counts.consumer_count)
            except ChannelNotFoundEntity:
                queues[role] = Queue(name, None, None)
    return queues


def as_object(seen: Overview, queues: dict[str, Queue], attention: list[Attention]) -> dict[str, Any]:
    """Return what is printed as JSON: durations are seconds. Pure."""
    jobs, deliveries, lateness, delayed = seen.jobs, seen.deliveries, seen.lateness, seen.delayed
    return {
        "now": seen.now,
        "schema": {"version": seen.schema_version, "needed": seen.schema_needed},
        "jobs": {
            "pending": jobs.pending,
            "overdue": jobs.overdue,
            "oldest_overdue_seconds": seen.now - jobs.overdue_since if jobs.overdue_since else 0,
            "refused_by_the_broker": jobs.refused,
            "refused_since": jobs.refused_since,
            "paused": jobs.paused,
        },
        "delayed": {
            "waiting": delayed.waiting,
            "overdue": delayed.overdue,
            "oldest_overdue_seconds": seen.now - delayed.overdue_since if delayed.overdue_since else 0,
            "refused_by_the_broker": delayed.refused,
            "refused_since": delayed.refused_since,
        },
        "lateness": None if lateness is None else {
            "rings": lateness.rings,
            "since": lateness.since,
            "p50": lateness.p50,
            "p99": lateness.p99,
            "longest": lateness.longest,
        },
        "deliveries": {
            "open": deliveries.open,
            "overdue": deliveries.overdue,
            "oldest_overdue_seconds": seen.now - deliveries.overdue_since if deliveries.overdue_since else 0,
            "failed_in_24_hours": deliveries.failed,
        },
        "services": {
            service: sum(one.service == service and one.state == "alive" for one in seen.instances)
            for service in SERVICES
        },
        "instances": [_instance(one) for one in seen.instances],
        "queues": {role: queue.messages for role, queue in queues.items()},
        "attention": [{"is_problem": one.is_problem, "text": one.text, "next": one.next} for one in attention],
    }  # fmt: skip


def _instance(one: Instance) -> dict[str, Any]:
    return {
        "service": one.service,
        "state": one.state,
        "instance": one.instance,
        "host": one.host,
        "version": one.version,
        "started_at": one.started_at,
        "seen_at": one.seen_at,
        "stopped_at": one.stopped_at,
        "open_breakers": one.open_breakers,
    }


def _print(out: Output, seen: Overview, queues: dict[str, Queue], attention: list[Attention]) -> None:
    jobs = seen.jobs
    out.sheet(
        {
            "jobs": _jobs(seen),
            "refused": f"{jobs.refused:,} by the broker" if jobs.refused else None,
            "paused": f"{jobs.paused:,}" if jobs.paused else None,
            "lateness": _lateness(out, seen),
            "delayed messages": _delayed(seen),
            "webhooks": _webhooks(seen),
        }
    )
    out.say("")
    out.table(
        QUEUE_COLUMNS, [{"queue": q.queue, "messages": q.messages, "consumers": q.consumers} for q in queues.values()]
    )
    out.say("")
    if seen.instances:
        out.table(SERVICE_COLUMNS, [_service_row(one, seen.now) for one in _shown(seen.instances)])
    else:
        out.say("No process of a service was seen in the last hour.")
    if attention:
        out.say("\nAttention", "bold")
    for one in attention:
        out.say(f"{'!' if one.is_problem else '·'} {one.text}", "red" if one.is_problem else "")
        out.suggest(one.next, "    ")
    if not any(one.is_problem for one in attention):
        out.say("\nAll well.", "green")


def _jobs(seen: Overview) -> str:
    jobs = seen.jobs
    since = f", the first for {describe_duration(seen.now - jobs.overdue_since)}" if jobs.overdue_since else ""
    return f"{jobs.pending:,} pending, {jobs.overdue:,} of them overdue{since}"


def _lateness(out: Output, seen: Overview) -> str:
    late = seen.lateness
    if late is None:
        return "no ring of the last 5 minutes is in the history"
    p50, p99, longest = (describe_duration(one) for one in (late.p50, late.p99, late.longest))
    return (
        f"p50 {p50}, p99 {p99}, longest {longest}: of the last {amount(late.rings, 'ring', 'rings')}, "
        f"since {out.time_of_day(late.since)}"
    )


def _delayed(seen: Overview) -> str | None:
    delayed = seen.delayed
    if not delayed.waiting:
        return None
    refused = f", {delayed.refused:,} not taken by the broker" if delayed.refused else ""
    return f"{delayed.waiting:,} waiting, {delayed.overdue:,} of them overdue{refused}"


def _webhooks(seen: Overview) -> str:
    deliveries = seen.deliveries
    return (
        f"{amount(deliveries.open, 'delivery', 'deliveries')} open, {deliveries.overdue:,} of them to be tried now, "
        f"{deliveries.failed:,} failed in 24 hours"
    )


def _shown(instances: list[Instance]) -> list[Instance]:
    """Leave out processes that were stopped in order while others of their service run."""
    alive = {one.service for one in instances if one.state == "alive"}
    return [one for one in instances if one.state != "stopped" or one.service not in alive]


def _service_row(one: Instance, now: datetime) -> dict[str, Any]:
    return {
        "service": one.service,
        "state": one.state,
        "last_seen": describe_distance(now - one.silent_for, now),
        "host": one.host,
        "started_at": one.started_at,
        "version": one.version,
    }
