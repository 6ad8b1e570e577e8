"""Who did what: the history of all ids, the newest first, without what went as planned."""

from typing import Any

from starlette.responses import Response

from console.pages.schedule import ENTRY_TONES
from console.pages.schedules import live_url
from console.web.context import Visit
from console.web.queries import Filters
from console.web.streams import LIST_SECONDS, live
from shared.contract.history import AS_PLANNED, What
from shared.reading.history import HistoryWanted, Place, list_changes
from shared.why.timeline import describe_entry

PAGE_ENTRIES = 50


async def show(visit: Visit) -> Response:
    return visit.console.renderer.page("history.html", visit, **await _read(visit))


async def stream(visit: Visit) -> Response:
    async def part(visit: Visit) -> str:
        return visit.console.renderer.text("history_live.html", visit, **await _read(visit))

    return live(visit, part, LIST_SECONDS)


async def _read(visit: Visit) -> dict[str, Any]:
    filters = Filters(visit.query, visit.zone)
    what = filters.read("what", What)
    wanted = HistoryWanted(filters.text("search"), filters.text("by"), (what,) if what else (), filters.moment("until"))
    after = filters.place("after", Place.parse)
    async with visit.console.reading() as connection:
        page = await list_changes(connection, wanted, PAGE_ENTRIES, after)
    return {
        "changes": page.changes,
        "next": str(page.next) if page.next else None,
        "is_first": after is None,
        "filters": {name: visit.query.get(name, "") for name in ("search", "by", "what", "until")},
        "kinds": [one.value for one in What if one not in AS_PLANNED],
        "problems": filters.problems,
        "describe_entry": describe_entry,
        "tone_of": lambda kind: ENTRY_TONES.get(kind, ""),
        "live_url": live_url(visit, "/history/live"),
    }
