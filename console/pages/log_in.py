"""Logging in and out, and the reader's zone and colours."""

import asyncio
import time
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from console.access.passwords import hash_password
from console.access.users import User
from console.errors import PageFailure
from console.web.context import Console, Visit
from console.web.forms import Form, read_form, require_same_origin
from console.web.visitors import SESSION_COOKIE, THEME_COOKIE, THEMES, ZONE_COOKIE, client_address, visitor_of
from shared.recurrence.zones import load_zone

# Checking one password takes 32 MiB: no more than two at a time, whatever comes in.
_CHECKS = asyncio.Semaphore(2)
# For a name that is not there, a hash is checked all the same: the time tells nothing.
_OF_NO_USER = hash_password("")
YEAR_SECONDS = 366 * 86_400


async def show_log_in(request: Request) -> Response:
    console: Console = request.app.state.console
    if visitor_of(request, console, datetime.now(UTC)) is not None:
        return RedirectResponse(console.renderer.url(_local_path(request.query_params.get("to", ""))), 303)
    return _form(console, request.query_params.get("to", ""))


async def log_in(request: Request) -> Response:
    console: Console = request.app.state.console
    require_same_origin(request, console)
    form = await read_form(request)
    name, to = form.text("name").strip()[:200], form.text("to")
    address = client_address(request, console)
    if wait := console.attempts.seconds_to_wait(name, address, time.monotonic()):
        console.metrics.log_ins["limited"].inc()
        return _form(console, to, name, f"Too many wrong passwords. Try again in {wait:.0f} s.", 429)
    # Counted before the check: attempts at the same time must not get past the limit.
    console.attempts.count_failure(name, address, time.monotonic())
    user = await _check(console, name, form.text("password"))
    if user is None:
        console.metrics.log_ins["wrong"].inc()
        return _form(console, to, name, "The name or the password is wrong.", 403)
    console.attempts.forget(name, address, time.monotonic())
    console.metrics.log_ins["accepted"].inc()
    answer = RedirectResponse(console.renderer.url(_local_path(to)), 303)
    cookie = console.session_key.begin(user, datetime.now(UTC), console.session_lifetime)
    _set_cookie(console, answer, SESSION_COOKIE, cookie, int(console.session_lifetime.total_seconds()))
    _set_zone(console, answer, form.text("zone"))
    return answer


async def log_out(visit: Visit, _: Form) -> Response:
    answer = RedirectResponse(visit.console.renderer.url("/log-in"), 303)
    answer.delete_cookie(SESSION_COOKIE, path=_cookie_path(visit.console))
    return answer


async def set_preferences(visit: Visit, form: Form) -> Response:
    answer = RedirectResponse(visit.console.renderer.url(_local_path(form.text("to"))), 303)
    zone = form.text("zone").strip()
    if zone and not _set_zone(visit.console, answer, zone):
        raise PageFailure(400, "No such time zone", f"{zone[:64]!r} is not an IANA name, such as Europe/Berlin.")
    if (theme := form.text("theme")) in THEMES:
        _set_cookie(visit.console, answer, THEME_COOKIE, theme, YEAR_SECONDS)
    elif theme:
        answer.delete_cookie(THEME_COOKIE, path=_cookie_path(visit.console))
    return answer


async def _check(console: Console, name: str, password: str) -> User | None:
    user = console.users.get(name)
    hashed = user.password if user and user.password else _OF_NO_USER
    async with _CHECKS:
        fits = await asyncio.to_thread(hashed.fits, password)
    return user if user and user.password and fits else None


def _form(console: Console, to: str, name: str = "", problem: str = "", status: int = 200) -> Response:
    return console.renderer.plain("log_in.html", status, {"to": to, "name": name, "problem": problem})


def _set_zone(console: Console, answer: Response, name: str) -> bool:
    try:
        load_zone(name)
    except ValueError:
        return False
    _set_cookie(console, answer, ZONE_COOKIE, name, YEAR_SECONDS)
    return True


def _set_cookie(console: Console, answer: Response, name: str, value: str, seconds: int) -> None:
    answer.set_cookie(
        name,
        value,
        max_age=seconds,
        path=_cookie_path(console),
        secure=console.settings.is_https,
        httponly=True,
        samesite="lax",
    )


def _cookie_path(console: Console) -> str:
    return console.settings.prefix or "/"


def _local_path(text: str) -> str:
    """Return the path if it leads to this console, else the first page: `//host` and `/\\host` lead elsewhere."""
    is_local = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if is_local else "/"
