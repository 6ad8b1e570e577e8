"""The pages Parked and Unrouted: messages that were kept for people, with the reason, to send again or to drop."""

from collections import Counter
from typing import Any

from starlette.responses import Response

from console.errors import PageFailure
from console.kept import MAX_SHOWN_MESSAGES
from console.web.context import Visit
from console.web.forms import Form
from console.web.queries import Filters
from shared.kept.message import KeptMessage, Kind
from shared.kept.parked import PARKED
from shared.kept.unrouted import UNROUTED
from shared.runtime.logs import get_log


async def show_parked(visit: Visit) -> Response:
    return await _show(visit, PARKED)


async def show_unrouted(visit: Visit) -> Response:
    return await _show(visit, UNROUTED)


async def act_on_parked(visit: Visit, form: Form) -> Response:
    return await _act(visit, form, PARKED)


async def act_on_unrouted(visit: Visit, form: Form) -> Response:
    return await _act(visit, form, UNROUTED)


async def _act(visit: Visit, form: Form, kind: Kind) -> Response:
    ids, action = form.all("id"), form.text("action")
    if not ids or len(ids) > MAX_SHOWN_MESSAGES:
        raise PageFailure(400, "Nothing was done", f"Choose messages first, {MAX_SHOWN_MESSAGES} at most at a time.")
    kept = visit.console.kept
    match action:
        case "send":
            sent, left = await kept.send_again(kind, ids)
            says = f"{sent:,} sent again" + (f"; {len(left):,} stay: no queue is bound for them" if left else "")
        case "drop":
            left = []
            says = f"{await kept.drop(kind, ids):,} dropped"
        case _:
            raise PageFailure(400, "Nothing was done", "There is no such action.")
    # The history is of jobs; who empties a queue is in the log.
    get_log().info("kept_messages_handled", operator=visit.user.name, queue=kind.command, result=says)
    return await _show(visit, kind, says, is_good=not left)


async def _show(visit: Visit, kind: Kind, says: str = "", *, is_good: bool = True) -> Response:
    filters = Filters(visit.query, visit.zone)
    job = filters.text("job")
    found = await visit.console.kept.look(kind)
    shown = [one for one in reversed(found.messages) if job is None or one.job == job]
    keys = Counter(one.routing_key for one in shown if hasattr(one, "routing_key"))
    values: dict[str, Any] = {
        "messages": [(one, one.summary(), _body(one, visit)) for one in shown],
        "all_seen": found.all_seen,
        "max_shown": MAX_SHOWN_MESSAGES,
        "job": job or "",
        "keys": keys.most_common(10),
        "problems": filters.problems,
        "says": says,
        "is_good": is_good,
    }
    return visit.console.renderer.page(f"{kind.command}.html", visit, **values)


MAX_BODY_SHOWN = 4_000


def _body(one: KeptMessage, visit: Visit) -> str | None:
    if not visit.user.sees_payloads:
        return None
    raw = one.message.body
    text = raw[:MAX_BODY_SHOWN].decode("utf-8", "replace")
    return text if len(raw) <= MAX_BODY_SHOWN else f"{text}… ({len(raw):,} bytes)"
