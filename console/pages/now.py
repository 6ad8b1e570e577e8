"""The first page: whether all goes well now, and what is due."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from starlette.responses import Response

from console.charts import draw_future, draw_lateness
from console.queues import count_messages
from console.web.context import Console, Visit
from console.web.queries import Filters
from console.web.streams import live
from shared.reading.attention import SERVICES, Attention, what_needs_attention
from shared.reading.deliveries import webhook_lateness
from shared.reading.future import MAX_DUE_COUNTED, Ahead, count_due_within, read_future
from shared.reading.history import lateness_by_minute
from shared.reading.overview import MAX_COUNTED, Overview, read_overview

EVERY_SECONDS = 2.0
WITHIN = {
    "Due in a minute": timedelta(minutes=1),
    "Due in an hour": timedelta(hours=1),
    "Due in a day": timedelta(days=1),
}
NO_RABBITMQ = Attention(
    is_problem=True, text="RabbitMQ does not answer the console: nothing can be sent from here", next="duebell status"
)
_PAGES_OF_COMMANDS = {
    "duebell list --to now": "/schedules?state=pending",
    "duebell list --refused": "/schedules?state=refused",
    "duebell list --state paused": "/schedules?state=paused",
    "duebell delayed list --to now": "/delayed",
    "duebell delayed list --refused": "/delayed?refused=yes",
    "duebell deliveries list": "/deliveries?state=failed",
    "duebell deliveries list --state open": "/deliveries?state=open",
    "duebell parked list": "/parked",
    "duebell unrouted list": "/unrouted",
}


async def show(visit: Visit) -> Response:
    return visit.console.renderer.page("now.html", visit, **await _read(visit))


async def stream(visit: Visit) -> Response:
    async def part(visit: Visit) -> str:
        return visit.console.renderer.text("now_live.html", visit, **await _read(visit))

    return live(visit, part, EVERY_SECONDS)


async def _read(visit: Visit) -> dict[str, Any]:
    console = visit.console
    ahead = Filters(visit.query, visit.zone).read("ahead", Ahead) or Ahead.HOUR
    quick, slow, future = await asyncio.gather(
        console.quick.get("overview", lambda: _quick(console)),
        console.slow.get("lateness", lambda: _slow(console)),
        console.charts.get(f"future {ahead}", lambda: _future(console, ahead)),
    )
    overview: Overview = quick["overview"]
    queues: Mapping[str, int | None] | None = quick["queues"]
    attention = what_needs_attention(overview, queues or {})
    return {
        **quick,
        "queues": queues or {},
        **slow,
        **future,
        "attention": [(one, _page_of(one)) for one in ([] if queues else [NO_RABBITMQ]) + attention],
        "ahead": ahead.value,
        "aheads": [one.value for one in Ahead],
        "max_counted": MAX_COUNTED,
        "max_due": MAX_DUE_COUNTED,
        "services": [(name, [one for one in overview.instances if one.service == name]) for name in SERVICES],
        "breakers": _breakers(overview),
        "live_url": console.renderer.url("/now/live", ahead=ahead.value),
    }


def _breakers(overview: Overview) -> list[tuple[str, timedelta]]:
    alive = (one for one in overview.instances if one.state == "alive")
    return sorted({pair for one in alive for pair in one.open_breakers.items()})


async def _quick(console: Console) -> dict[str, Any]:
    async with console.reading() as connection:
        overview = await read_overview(connection)
        due = await count_due_within(connection, overview.now, *WITHIN.values())
    numbers = [(name, overview.now + ahead, jobs) for (name, ahead), jobs in zip(WITHIN.items(), due, strict=True)]
    return {
        "overview": overview,
        "due": numbers,
        "queues": await count_messages(console.commands.broker, console.names),
    }


async def _slow(console: Console) -> dict[str, Any]:
    async with console.reading() as connection:
        return {
            "lateness": draw_lateness(await lateness_by_minute(connection)),
            "webhooks": await webhook_lateness(connection),
        }


async def _future(console: Console, ahead: Ahead) -> dict[str, Any]:
    async with console.reading() as connection:
        parts = await read_future(connection, ahead)
    return {"future": draw_future(parts)}


def _page_of(attention: Attention) -> str:
    """Return the page that shows what the command line would show with the command that it advises."""
    return _PAGES_OF_COMMANDS.get(attention.next, "")
