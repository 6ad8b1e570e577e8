"""Delayed messages: what waits, for which exchange, what the broker does not take; to cancel or to publish now."""

from collections import Counter
from typing import Any

from starlette.responses import Response

from console.acting import act_on
from console.errors import PageFailure
from console.pages.schedules import live_url
from console.web.context import Visit
from console.web.forms import Form
from console.web.queries import Filters
from console.web.streams import LIST_SECONDS, live
from shared.contract.delayed import exchange_named
from shared.reading.delay_exchanges import list_exchanges
from shared.reading.delayed import MessageCursor, WantedMessages, list_messages

PAGE_MESSAGES = 50
MAX_CHOSEN_MESSAGES = 200
MAX_SHOWN_EXCHANGES = 50
ACTIONS = {"release": "trigger", "cancel": "cancel"}
MESSAGE_FILTERS = ("exchange", "key", "since", "until", "refused")


async def show(visit: Visit) -> Response:
    return visit.console.renderer.page("delayed.html", visit, **await _read(visit))


async def stream(visit: Visit) -> Response:
    async def part(visit: Visit) -> str:
        return visit.console.renderer.text("delayed_live.html", visit, **await _read(visit))

    return live(visit, part, LIST_SECONDS)


async def act(visit: Visit, form: Form) -> Response:
    """Send one command for each chosen message."""
    chosen = list(dict.fromkeys(form.all("id")))
    if not chosen or len(chosen) > MAX_CHOSEN_MESSAGES:
        raise PageFailure(400, "Nothing was sent", f"Choose messages first, {MAX_CHOSEN_MESSAGES} at most at a time.")
    action = ACTIONS.get(form.text("action"))
    if action is None:
        raise PageFailure(400, "Nothing was sent", "There is no such action.")
    verdicts = await act_on(visit, chosen, action, form.text("note") if action == "cancel" else "")
    counts = Counter("no answer yet" if one.outcome is None else one.outcome.value for one in verdicts)
    values = {
        **await _read(visit),
        "counts": dict(counts),
        "verdicts": [one for one in verdicts if not one.is_good],
        "all_good": all(one.is_good for one in verdicts),
    }
    return visit.console.renderer.page("delayed.html", visit, **values)


async def _read(visit: Visit) -> dict[str, Any]:
    filters = Filters(visit.query, visit.zone)
    exchange = filters.text("exchange")
    wanted = WantedMessages(
        None if exchange is None else exchange_named(exchange),
        filters.text("key"),
        filters.moment("since"),
        filters.moment("until"),
        refused=filters.text("refused") is not None,
    )
    after = filters.place("after", MessageCursor.parse)
    async with visit.console.reading() as connection:
        page = await list_messages(connection, wanted, PAGE_MESSAGES, after)
        exchanges = await list_exchanges(connection, MAX_SHOWN_EXCHANGES) if after is None else []
    return {
        "messages": page.messages,
        "exchanges": exchanges,
        "next": str(page.next) if page.next else None,
        "is_first": after is None,
        "filters": {name: visit.query.get(name, "") for name in MESSAGE_FILTERS},
        "problems": filters.problems,
        "live_url": live_url(visit, "/delayed/live"),
        "counts": {},
        "verdicts": [],
        "all_good": True,
    }
