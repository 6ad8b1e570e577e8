"""Finds out who makes a request: by a session, by the header of a trusted proxy, or, on loopback alone, without either.
Access is closed unless one of them says yes.
"""

from datetime import datetime
from ipaddress import ip_address
from zoneinfo import ZoneInfo

from starlette.datastructures import Headers
from starlette.requests import Request

from console.access.users import Role, User, user_of_proxy
from console.web.context import Console, Visitor
from shared.recurrence.zones import load_zone

SESSION_COOKIE = "duebell_session"
ZONE_COOKIE = "duebell_zone"
THEME_COOKIE = "duebell_theme"
THEMES = ("light", "dark")
LOCAL_USER = User("local", Role.OPERATOR, sees_payloads=True)
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


def visitor_of(request: Request, console: Console, now: datetime) -> Visitor | None:
    """Return the visitor, or None if the request shows no right to be here."""
    if (session := _by_session(request, console, now)) is not None:
        return session
    if comes_from_proxy(request, console):
        names = request.headers.getlist(console.settings.console_proxy_header)
        user = user_of_proxy(names[0], console.users, console.settings.console_proxy_role) if len(names) == 1 else None
        return _without_session(console, user) if user else None
    if console.settings.console_open_on_loopback and _is_asked_on_loopback(request.headers):
        return _without_session(console, LOCAL_USER)
    return None


def _by_session(request: Request, console: Console, now: datetime) -> Visitor | None:
    cookie = request.cookies.get(SESSION_COOKIE)
    session = console.session_key.read(cookie) if cookie else None
    user = console.users.get(session.user) if session else None
    if not cookie or not session or not user or user.password is None:
        return None
    if not console.session_key.is_valid(cookie, session, user, now):
        return None
    return Visitor(user, session.id, console.session_key.form_token(user.name, session.id), has_session=True)


def _without_session(console: Console, user: User) -> Visitor:
    return Visitor(user, "", console.session_key.form_token(user.name, ""), has_session=False)


def comes_from_proxy(request: Request, console: Console) -> bool:
    """Tell whether the other end of the connection is in one of the networks of trusted proxies."""
    if request.client is None:
        return False
    try:
        address = ip_address(request.client.host)
    except ValueError:
        return False
    return any(address in network for network in console.settings.console_trusted_proxies)


def client_address(request: Request, console: Console) -> str:
    """Return the address by which log-ins are limited: the one that a trusted proxy added last, or the connection's."""
    if comes_from_proxy(request, console):
        # A proxy may write a header of its own behind the one that its client has sent.
        last = (request.headers.getlist("X-Forwarded-For") or [""])[-1]
        return last.rpartition(",")[2].strip() or "proxy"
    return request.client.host if request.client else "unknown"


def _is_asked_on_loopback(headers: Headers) -> bool:
    """Tell whether the browser asked for this machine by name: a foreign name that leads here is an attack."""
    host = headers.get("Host", "")
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    return name.lower() in LOOPBACK_NAMES


def has_zone(request: Request) -> bool:
    """Tell whether the page's script or the form has set the reader's zone."""
    return ZONE_COOKIE in request.cookies


def zone_of(request: Request) -> ZoneInfo:
    """Return the reader's zone, as the page's script or the form set it; UTC if neither did."""
    name = request.cookies.get(ZONE_COOKIE, "")
    try:
        return load_zone(name) if name else load_zone("UTC")
    except ValueError:
        return load_zone("UTC")
