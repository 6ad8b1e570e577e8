"""Decides what needs an operator's attention, and which command to run next. No I/O."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.reading.overview import MAX_COUNTED, Instance, Overview
from shared.reading.times import describe_duration

# Some seconds of waiting are ordinary: after a pause of the machine, say, or while many jobs are due at one moment.
LATE = timedelta(seconds=60)
SERVICES = ("consumer", "producer", "delivery")
MAX_HOSTS_NAMED = 5


@dataclass(frozen=True, slots=True)
class Attention:
    """One thing to look at: a problem, with which `duebell status` exits with 1, or a remark. `next` is a command."""

    is_problem: bool
    text: str
    next: str


def what_needs_attention(seen: Overview, queues: Mapping[str, int | None]) -> list[Attention]:
    """Return the problems, then the remarks. `queues` has the messages in each queue by its role, None if it is not
    there.
    """
    problems = [
        *_of_installation(seen, queues),
        *_of_waiting(seen),
        *_of_queues(queues),
        *_of_failed(seen),
    ]
    return [Attention(True, *one) for one in problems] + [Attention(False, *one) for one in _remarks(seen)]


Told = tuple[str, str]


def _of_installation(seen: Overview, queues: Mapping[str, int | None]) -> Iterator[Told]:
    if seen.schema_version < seen.schema_needed:
        yield (
            f"the schema is old: it has version {seen.schema_version}, and {seen.schema_needed} is needed",
            "python -m shared.migrate",
        )
    for service in SERVICES:
        of_service = [one for one in seen.instances if one.service == service]
        if not any(one.state == "alive" for one in of_service):
            yield f"no {service} process is running{_last_sign(of_service)}", f"python -m {service}"
    for role, messages in queues.items():
        if messages is None:
            yield f"the queue {role} is not there", "python -m shared.topology"


def _last_sign(instances: Sequence[Instance]) -> str:
    if not instances:
        return ""
    last = min(instances, key=lambda one: one.silent_for)
    did = "stopped" if last.state == "stopped" else "gave its last sign of life"
    return f": the last one, on host {last.host}, {did} {describe_duration(last.silent_for)} ago"


def _of_waiting(seen: Overview) -> Iterator[Told]:
    jobs, deliveries = seen.jobs, seen.deliveries
    if (late := _longer_than_usual(jobs.overdue_since, seen.now)) is not None:
        yield (
            f"{amount(jobs.overdue, 'job is', 'jobs are')} overdue, the first for {describe_duration(late)}",
            "duebell list --to now",
        )
    if jobs.refused:
        since = f", one for {describe_duration(seen.now - jobs.refused_since)}" if jobs.refused_since else ""
        yield (
            f"{amount(jobs.refused, 'job is', 'jobs are')} refused by the broker{since}: a queue is full",
            "duebell list --refused",
        )
    yield from _of_delayed(seen)
    if (late := _longer_than_usual(deliveries.overdue_since, seen.now)) is not None:
        overdue = amount(deliveries.overdue, "delivery is", "deliveries are")
        yield (
            f"{overdue} overdue, the first for {describe_duration(late)}",
            "duebell deliveries list --state open",
        )


def _of_delayed(seen: Overview) -> Iterator[Told]:
    delayed = seen.delayed
    if (late := _longer_than_usual(delayed.overdue_since, seen.now)) is not None:
        overdue = amount(delayed.overdue, "delayed message is", "delayed messages are")
        yield f"{overdue} overdue, the first for {describe_duration(late)}", "duebell delayed list --to now"
    if delayed.refused:
        since = f", one for {describe_duration(seen.now - delayed.refused_since)}" if delayed.refused_since else ""
        refused = amount(delayed.refused, "delayed message is", "delayed messages are")
        yield (
            f"{refused} not taken by the broker{since}: the exchange is gone, nothing is bound, or a queue is full",
            "duebell delayed list --refused",
        )


def _longer_than_usual(since: datetime | None, now: datetime) -> timedelta | None:
    return now - since if since is not None and now - since > LATE else None


def _of_queues(queues: Mapping[str, int | None]) -> Iterator[Told]:
    if parked := queues.get("parked"):
        yield (
            f"{amount(parked, 'message is', 'messages are')} parked: what could not be understood",
            "duebell parked list",
        )
    if unrouted := queues.get("unrouted"):
        yield (
            f"{amount(unrouted, 'event', 'events')} unrouted: published, and no queue was bound for it",
            "duebell unrouted list",
        )


def _of_failed(seen: Overview) -> Iterator[Told]:
    if seen.deliveries.failed:
        yield (
            f"{amount(seen.deliveries.failed, 'webhook delivery', 'webhook deliveries')} failed in the last 24 hours, "
            "not replayed",
            "duebell deliveries list",
        )


def _remarks(seen: Overview) -> Iterator[Told]:
    if seen.jobs.paused:
        yield f"{amount(seen.jobs.paused, 'job is', 'jobs are')} paused", "duebell list --state paused"
    alive = [one for one in seen.instances if one.state == "alive"]
    if hosts := sorted({host for one in alive for host in one.open_breakers}):
        more = f" and {len(hosts) - MAX_HOSTS_NAMED} more" if len(hosts) > MAX_HOSTS_NAMED else ""
        yield (
            f"no calls for now to {', '.join(hosts[:MAX_HOSTS_NAMED])}{more}: too many failed in a row",
            "duebell deliveries list --state open",
        )
    for one in seen.instances:
        if one.state == "silent" and any(other.service == one.service for other in alive):
            yield (
                f"a {one.service} on host {one.host} gives no sign of life, since {describe_duration(one.silent_for)}",
                f"duebell status --watch  # and look at the process on {one.host}",
            )


def amount(number: int, singular: str, plural: str) -> str:
    """Return the number with its word. From MAX_COUNTED on it may be more."""
    more = " or more" if number == MAX_COUNTED else ""
    return f"{number:,}{more} {singular if number == 1 else plural}"
