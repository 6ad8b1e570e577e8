"""An action on all schedules that match: they are counted, the visitor agrees, and the page shows how far it is."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from starlette.responses import RedirectResponse, Response

from console.acting import send
from console.commands import Command
from console.errors import PageFailure, not_found
from console.pages.schedules import selector_of, words_of
from console.web.context import Visit
from console.web.forms import Form
from console.web.queries import Filters
from console.web.streams import live
from shared.contract.messages import BULK_TYPE, BulkAction, Outcome
from shared.reading.bulks import MAX_BULKS, Bulk, list_bulks, read_bulk

LIVE_SECONDS = 1.0
# The end of the id of a bulk that does what a dry run has counted.
CARRIED_OUT = "-carried-out"
# Filters of the list of schedules that a bulk does not know: without them it would act on more than is shown.
NOT_SELECTED_BY = ("owner", "since", "until")
# In which state jobs are before an action, and after it.
STATES_AROUND: Mapping[str, tuple[str, str]] = {
    BulkAction.PAUSE: ("pending", "paused"),
    BulkAction.RESUME: ("paused", "pending"),
    BulkAction.TRIGGER: ("pending", "pending"),
    BulkAction.CANCEL: ("pending", "cancelled"),
}


async def show(visit: Visit) -> Response:
    """Show one bulk, or without an id those that go on, and those that ended last."""
    if not visit.query.get("id"):
        async with visit.console.reading() as connection:
            bulks = await list_bulks(connection, MAX_BULKS)
        return visit.console.renderer.page("bulks.html", visit, bulks=bulks, selected=_selected)
    return visit.console.renderer.page("bulk.html", visit, **await _read(visit))


async def stream(visit: Visit) -> Response:
    async def part(visit: Visit) -> str:
        return visit.console.renderer.text("bulk_live.html", visit, **await _read(visit))

    await _read(visit)  # a bulk that is not there is told before the stream begins
    return live(visit, part, LIVE_SECONDS)


async def act(visit: Visit, form: Form) -> Response:
    """Count what matches the filters of the address; or, for a bulk that has counted, carry it out."""
    if visit.query.get("id"):
        async with visit.console.reading() as connection:
            counted = await _find(visit, connection)
        content = _carried_out(counted)
    else:
        filters = Filters(visit.query, visit.zone)
        selector, action = selector_of(filters), form.text("action")
        if any(visit.query.get(name) for name in NOT_SELECTED_BY):
            raise PageFailure(400, "Nothing was sent", "An action on all that match knows no owner and no time.")
        if filters.problems or not selector or action not in {one.value for one in BulkAction}:
            raise PageFailure(
                400, "Nothing was sent", "; ".join(filters.problems) or "Choose labels, a topic or an id."
            )
        note = form.text("note").strip()
        content = {"id": f"console-{uuid4().hex[:16]}", "action": action, "selector": selector, "dry_run": True}
        content |= {"note": note} if note else {}
    [verdict] = await send(visit, [Command(BULK_TYPE, content)])
    if verdict.outcome is Outcome.REJECTED or verdict.errors:
        raise PageFailure(400, "It was refused", "; ".join(verdict.errors))
    return RedirectResponse(visit.console.renderer.url("/bulk", id=content["id"]), 303)


def _carried_out(counted: Bulk) -> dict[str, Any]:
    """Return the bulk that does what the dry run has counted. Its id is the same for a form that is sent twice."""
    if not counted.dry_run or counted.finished_at is None:
        raise PageFailure(400, "Nothing was sent", "This bulk is carried out already, or still counts.")
    given = {"labels": counted.labels, "topic": counted.topic, "id_prefix": counted.id_prefix}
    content = {
        "id": counted.id[:180] + CARRIED_OUT,
        "action": counted.action,
        "selector": {name: value for name, value in given.items() if value is not None},
    }
    return content | ({"note": counted.note} if counted.note else {})


async def _read(visit: Visit) -> dict[str, Any]:
    async with visit.console.reading() as connection:
        bulk = await _find(visit, connection)
        counted = await read_bulk(connection, bulk.id.removesuffix(CARRIED_OUT))
    return {
        "bulk": bulk,
        "expected": counted.matched if counted and counted.id != bulk.id else None,
        "selected": _selected(bulk),
        "list_url": visit.console.renderer.url("/schedules", **_list_of(bulk)),
        "live_url": visit.console.renderer.url("/bulk/live", id=bulk.id),
    }


async def _find(visit: Visit, connection: Any) -> Bulk:  # noqa: ANN401 - of the pool
    bulk_id = visit.query.get("id", "").replace("\0", "")
    bulk = await read_bulk(connection, bulk_id)
    if bulk is None:
        raise not_found("There is no such bulk, or no consumer has taken it yet: reload the page.")
    return bulk


def _list_of(bulk: Bulk) -> dict[str, str | None]:
    """Return the filters of the page that lists what the bulk changes, or has changed."""
    before, after = STATES_AROUND[bulk.action]
    labels = ",".join(f"{key}={value}" for key, value in (bulk.labels or {}).items())
    state = before if bulk.dry_run else after
    return {"state": state, "label": labels, "topic": bulk.topic, "search": bulk.id_prefix}


def _selected(bulk: Bulk) -> str:
    return words_of({"labels": bulk.labels or {}, "topic": bulk.topic, "id_prefix": bulk.id_prefix})
