"""Webhook deliveries, host by host and one by one, with every attempt and what the receiver said."""

from typing import Any

from starlette.responses import Response

from console.errors import PageFailure, not_found
from console.pages.schedules import live_url
from console.replaying import replay
from console.web.context import Console, Visit
from console.web.forms import Form
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
from shared.reading.replays import find_to_replay

PAGE_DELIVERIES = 50
MAX_ID = 2**63 - 1
# At a time: more are replayed by asking again.
MAX_REPLAYED = 10_000
# Finding them may take many walks, and a person waits for it once.
FIND_TIMEOUT = 60.0


async def show(visit: Visit) -> Response:
    return visit.console.renderer.page("deliveries.html", visit, **await _read(visit))


async def stream(visit: Visit) -> Response:
    async def part(visit: Visit) -> str:
        return visit.console.renderer.text("deliveries_live.html", visit, **await _read(visit))

    return live(visit, part, LIST_SECONDS)


async def show_one(visit: Visit) -> Response:
    return visit.console.renderer.page("delivery.html", visit, **await _read_one(visit))


async def stream_one(visit: Visit) -> Response:
    async def part(visit: Visit) -> str:
        return visit.console.renderer.text("delivery_live.html", visit, **await _read_one(visit))

    await _read_one(visit)  # a delivery that is not there is told before the stream begins
    return live(visit, part, LIST_SECONDS)


async def _read_one(visit: Visit) -> dict[str, Any]:
    text = visit.query.get("id", "")
    if not is_number(text):
        raise not_found("The address names no delivery.")
    async with visit.console.reading() as connection:
        delivery = await read_delivery(connection, int(text))
        if delivery is None:
            raise not_found(f"There is no delivery {text}. Those that ended are kept for RETENTION_DAYS.")
        attempts = (await read_attempts(connection, [delivery.id]))[delivery.id]
    return {"delivery": delivery, "attempts": attempts, "live_url": live_url(visit, "/delivery/live")}


async def act(visit: Visit, form: Form) -> Response:
    """Replay the chosen deliveries, or all that match the filters of the address."""
    match form.text("action"):
        case "chosen":
            chosen = list(dict.fromkeys(int(text) for text in form.all("id") if is_number(text)))[:MAX_REPLAYED]
        case "all":
            filters = Filters(visit.query, visit.zone)
            wanted = _wanted(filters)
            if filters.problems:  # without the filter, others would be replayed, too
                raise PageFailure(400, "Nothing was sent", "; ".join(filters.problems))
            async with visit.console.reading(FIND_TIMEOUT) as connection:
                chosen = await find_to_replay(connection, wanted, MAX_REPLAYED)
        case _:
            raise PageFailure(400, "Nothing was sent", "There is no such action.")
    if not chosen:
        raise PageFailure(400, "Nothing was sent", "No failed delivery matches, or all that match were replayed.")
    replayed = await replay(visit, chosen)
    says = f"{replayed:,} replayed" if replayed == len(chosen) else f"{replayed:,} of {len(chosen):,} replayed so far"
    values = {**await _read(visit), "says": says, "is_good": replayed == len(chosen)}
    return visit.console.renderer.page("deliveries.html", visit, **values)


def is_number(text: str) -> bool:
    """Tell whether the text can be the number of a delivery. Python reads no number of thousands of digits."""
    return text.isascii() and text.isdigit() and len(text) <= len(str(MAX_ID)) and 1 <= int(text) <= MAX_ID


async def _hosts(console: Console) -> dict[str, Any]:
    async with console.reading() as connection:
        return {"hosts": await count_by_host(connection)}


def _wanted(filters: Filters) -> DeliveriesWanted:
    return DeliveriesWanted(
        filters.read("state", DeliveryState) or DeliveryState.FAILED,
        filters.text("job"),
        filters.text("host"),
        filters.text("topic"),
        filters.text("reason"),
    )


async def _read(visit: Visit) -> dict[str, Any]:
    filters = Filters(visit.query, visit.zone)
    wanted = _wanted(filters)
    after = filters.place("after", DeliveryPlace.parse)
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
        "max_replayed": MAX_REPLAYED,
        "says": "",
        "is_good": True,
    }
