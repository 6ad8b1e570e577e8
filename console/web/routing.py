"""Joins addresses to pages. A page is reached only by a visitor with the right to it; an action only by a form of the
console's own.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from console.errors import PageFailure, not_allowed
from console.web.context import Console, Visit
from console.web.forms import Form, read_form, require_same_origin, require_token
from console.web.visitors import visitor_of, zone_of

Page: TypeAlias = Callable[[Visit], Awaitable[Response]]
Action: TypeAlias = Callable[[Visit, Form], Awaitable[Response]]

OPERATORS_ONLY = "Your role is viewer: you may read, and not act. Ask for the role operator."


def page(path: str, show: Page) -> Route:
    """Make the route of a page that every user may read."""

    async def endpoint(request: Request) -> Response:
        visit = _visit(request)
        return _to_log_in(request) if visit is None else await show(visit)

    return Route(path, endpoint, methods=["GET"], name=path)


def action(path: str, act: Action, *, needs_operator: bool = True) -> Route:
    """Make the route of a form that changes something."""

    async def endpoint(request: Request) -> Response:
        visit = _visit(request)
        if visit is None:
            raise PageFailure(401, "You are not logged in", "Your session has ended. Log in and do it once more.")
        require_same_origin(request, visit.console)
        form = await read_form(request)
        require_token(form, visit.visitor, visit.console)
        if needs_operator and not visit.user.may_act:
            raise not_allowed(OPERATORS_ONLY)
        return await act(visit, form)

    return Route(path, endpoint, methods=["POST"], name=f"POST {path}")


def _visit(request: Request) -> Visit | None:
    console: Console = request.app.state.console
    now = datetime.now(UTC)
    visitor = visitor_of(request, console, now)
    return None if visitor is None else Visit(request, console, visitor, zone_of(request), now)


def _to_log_in(request: Request) -> Response:
    console: Console = request.app.state.console
    if not any(user.password for user in console.users.values()):
        raise not_allowed("The proxy in front of this console did not name a user who may use it.")
    if request.headers.get("HX-Request"):
        # htmx leaves the page as it is, and asks for the whole one.
        return Response(status_code=401, headers={"HX-Refresh": "true"})
    path = request.scope["path"]
    query = request.url.query
    wanted = path + (f"?{query}" if query else "")
    return RedirectResponse(console.renderer.url("/log-in", to=None if wanted == "/" else wanted), 303)
