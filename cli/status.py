"""`duebell status`: backlog, lateness, queue depths, running services, and a list of what needs attention."""

from dataclasses import dataclass
from typing import Any

from aiormq.exceptions import ChannelNotFoundEntity

from cli.command_runner import run
from cli.errors import Failure
from cli.output import AsJson, Output, Timezone
from cli.stores import Stores
from cli.table_layout import Column
from delivery.store.samples import sample_deliveries
from producer.store.samples import sample_jobs
from shared.postgres.migrate import current_version, newest_version
from shared.postgres.pool import Connection
from shared.reading.overview import read_lateness

COUNT_UP_TO = 100_000
LATE_SECONDS = 60.0
QUEUE_TIMEOUT = 5.0

FAILED = """
select count(*) from (select from deliveries
 where status = 'FAILED' and finished_at > now() - interval '24 hours' limit $1) as failed
"""
# Each producer has exactly one session with this name.
PRODUCERS = """
select count(*) from pg_stat_activity
 where application_name = 'duebell-producer-listen' and datname = current_database()
"""


@dataclass(frozen=True, slots=True)
class Queue:
    queue: str
    messages: int | None
    consumers: int | None


def status(timezone: Timezone = None, as_json: AsJson = None) -> None:
    """Show backlog, lateness, queue depths and the services seen. Exits with 1 if something needs attention.

    Example: duebell status --json
    """

    async def work() -> None:
        out = Output.of(as_json, timezone)
        stores = Stores.from_environment()
        async with stores.database() as connection:
            seen = await _from_database(connection)
        queues = await _from_broker(stores)
        seen["services"] = {
            "consumer": queues["inbox"].consumers,
            "producer": seen.pop("producers"),
            "delivery": queues["deliveries"].consumers,
        }
        seen["queues"] = {role: queue.messages for role, queue in queues.items()}
        seen["attention"] = what_is_wrong(seen)
        if out.as_json:
            out.json(seen)
        else:
            _show(out, seen, queues)
        if seen["attention"]:
            raise Failure("; ".join(seen["attention"]))

    run(work())


async def _from_database(connection: Connection) -> dict[str, Any]:
    jobs, deliveries = await sample_jobs(connection, COUNT_UP_TO), await sample_deliveries(connection, COUNT_UP_TO)
    lateness = await read_lateness(connection)
    return {
        "schema": {"version": await current_version(connection), "needed": newest_version()},
        "jobs": {
            "pending": jobs.pending,
            "overdue": jobs.overdue,
            "refused_by_the_broker": jobs.refused,
            "oldest_overdue_seconds": round(jobs.oldest_overdue_seconds, 3),
        },
        "lateness": {
            "jobs": lateness.rings,
            "p50": lateness.p50.total_seconds(),
            "p99": lateness.p99.total_seconds(),
        }
        if lateness
        else {},
        "deliveries": {
            "open": deliveries.open,
            "overdue": deliveries.overdue,
            "oldest_overdue_seconds": round(deliveries.oldest_overdue_seconds, 3),
            "failed_in_24_hours": await connection.fetchval(FAILED, COUNT_UP_TO),
        },
        "producers": await connection.fetchval(PRODUCERS),
    }


async def _from_broker(stores: Stores) -> dict[str, Queue]:
    names = stores.names
    roles = {"inbox": names.inbox, "deliveries": names.deliveries, "parked": names.parked, "unrouted": names.unrouted}
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


def what_is_wrong(seen: dict[str, Any]) -> list[str]:
    """The list under "attention": one line for each problem, with what to do next. Pure."""
    wrong = []
    if seen["schema"]["version"] < seen["schema"]["needed"]:
        wrong.append("the schema is old: run python -m shared.migrate")
    wrong += [f"no {service} is running" for service, number in seen["services"].items() if not number]
    wrong += [f"the queue {role} is not there: run python -m shared.topology"
              for role, messages in seen["queues"].items() if messages is None]  # fmt: skip
    for what in ("jobs", "deliveries"):
        late = seen[what]["oldest_overdue_seconds"]
        if late > LATE_SECONDS:
            wrong.append(f"{what} are late, the oldest by {late:.0f} s")
    if seen["queues"]["parked"]:
        wrong.append(f"{seen['queues']['parked']} parked: see duebell parked list")
    return wrong


def _show(out: Output, seen: dict[str, Any], queues: dict[str, Queue]) -> None:
    jobs, deliveries, lateness = seen["jobs"], seen["deliveries"], seen["lateness"]
    late = "nothing rang in the last five minutes"
    if lateness.get("jobs"):
        late = (
            f"p50 {1000 * lateness['p50']:.0f} ms, p99 {1000 * lateness['p99']:.0f} ms, of the last {lateness['jobs']}"
        )
    out.sheet(
        {
            "jobs": f"{jobs['pending']} pending, {jobs['overdue']} of them overdue",
            "oldest_overdue": f"{jobs['oldest_overdue_seconds']:.1f} s" if jobs["overdue"] else None,
            "refused_by_the_broker": jobs["refused_by_the_broker"] or None,
            "lateness": late,
            "deliveries": f"{deliveries['open']} open, {deliveries['overdue']} of them due, "
            f"{deliveries['failed_in_24_hours']} failed in 24 hours",
        }
    )
    depths = [{"queue": q.queue, "messages": q.messages, "consumers": q.consumers} for q in queues.values()]
    out.table((Column("queue"), Column("messages"), Column("consumers")), depths)
    running = [{"service": name, "seen": number} for name, number in seen["services"].items()]
    out.table((Column("service"), Column("seen")), running)
    for problem in seen["attention"]:
        out.say(f"! {problem}")
    if not seen["attention"]:
        out.say("All well.")
