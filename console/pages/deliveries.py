"""Webhook deliveries, host by host and one by one, with every attempt and what the receiver said."""

from typing import Any

from starlette.responses import Response

from console.pages.schedules import live_url
from console.web.context import Console, Visit
from console.web.failures import not_found
from console.web.queries import Filters
from console.web.streams import LIST_SECONDS, live
from shared.reading.deliveries import (
    DeliveriesWanted,
    DeliveryPlace,
    DeliveryState,
    count_by_host,
    list_deliveries,
    read_attempts,
    read_delivery,
)

PAGE_DELIVERIES = 50
MAX_ID = 2**63 - 1


async def show(visit: Visit) -> Response:
    return visit.console.renderer.page("deliveries.html", visit, **await _read(visit))


async def stream(visit: Visit) -> Response:
    async def part(visit: Visit) -> str:
        return visit.console.renderer.text("deliveries_live.html", visit, **await _read(visit))

    return live(visit, part, LIST_SECONDS)


async def show_one(visit: Visit) -> Response:
    text = visit.query.get("id", "")
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_ID):
        raise not_found("The address names no delivery.")
    async with visit.console.reading() as connection:
        delivery = await read_delivery(connection, int(text))
        if delivery is None:
            raise not_found(f"There is no delivery {text}. Those that ended are kept for RETENTION_DAYS.")
        attempts = (await read_attempts(connection, [delivery.id]))[delivery.id]
    return visit.console.renderer.page("delivery.html", visit, delivery=delivery, attempts=attempts)


async def _hosts(console: Console) -> dict[str, Any]:
    async with console.reading() as connection:
        return {"hosts": await count_by_host(connection)}


async def _read(visit: Visit) -> dict[str, Any]:
    filters = Filters(visit.query, visit.zone)
    wanted = DeliveriesWanted(
        filters.read("state", DeliveryState) or DeliveryState.FAILED,
        filters.text("job"),
        filters.text("host"),
        filters.text("topic"),
        filters.text("reason"),
    )
    after = filters.read("after", DeliveryPlace.parse)
    async with visit.console.reading() as connection:
        page = await list_deliveries(connection, wanted, PAGE_DELIVERIES, after)
    hosts = (await visit.console.slow.get("hosts", lambda: _hosts(visit.console)))["hosts"] if after is None else []
    return {
        "deliveries": page.deliveries,
        "next": str(page.next) if page.next else None,
        "is_first": after is None,
        "hosts": hosts,
        "state": wanted.state.value,
        "states": [one.value for one in DeliveryState],
        "filters": {name: visit.query.get(name, "") for name in ("job", "host", "topic", "reason")},
        "problems": filters.problems,
        "live_url": live_url(visit, "/deliveries/live"),
    }
