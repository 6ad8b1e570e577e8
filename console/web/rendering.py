"""Fills the templates: with links below the path prefix, times in the reader's zone, and numbers that are easy to read.
Everything is escaped; nothing in a template runs a query.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup
from starlette.responses import HTMLResponse

from console.web.context import Visit
from console.web.visitors import THEME_COOKIE, THEMES, has_zone
from shared.contract.fields import format_instant
from shared.reading.times import describe_distance, describe_duration
from shared.version import VERSION

PACKAGE = Path(__file__).parents[1]
STATIC = PACKAGE / "static"


class Renderer:
    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._marks = {
            path.relative_to(STATIC).as_posix(): sha256(path.read_bytes()).hexdigest()[:12]
            for path in STATIC.rglob("*")
            if path.is_file()
        }
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(PACKAGE / "templates"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
            auto_reload=False,
        )
        self._templates.globals.update(
            {"url": self.url, "static": self.static, "seconds": _seconds, "version": VERSION}
        )
        self._templates.filters.update({"number": _number, "duration": describe_duration})
        # Compiled now, and not while the first visitors wait.
        for name in self._templates.list_templates():
            self._templates.get_template(name)

    def url(self, path: str, /, **query: object) -> str:
        """Return a link to a page. Parts of the query, of any name, that are None or empty are left out."""
        given = {name: value for name, value in query.items() if value not in (None, "")}
        return self.prefix + path + (f"?{urlencode(given)}" if given else "")

    def static(self, name: str) -> str:
        """Return the link to a file that browsers may keep for good: it changes with the content."""
        return f"{self.prefix}/static/{name}?v={self._marks[name]}"

    def text(self, template: str, visit: Visit, **values: Any) -> str:  # noqa: ANN401
        """Fill a template for a visit."""
        theme = visit.request.cookies.get(THEME_COOKIE)
        times = Times(visit.zone, visit.now)
        return self._templates.get_template(template).render(
            visit=visit,
            user=visit.user,
            here=visit.request.scope["path"],
            theme=theme if theme in THEMES else "",
            zone=str(visit.zone),
            zone_chosen=has_zone(visit.request),
            here_with_query=here_with_query(visit),
            now=visit.now,
            when=times.when,
            clock=times.clock,
            local=times.local,
            field_time=times.field_time,
            **values,
        )

    def page(self, template: str, visit: Visit, status: int = 200, **values: Any) -> HTMLResponse:  # noqa: ANN401
        return HTMLResponse(self.text(template, visit, **values), status)

    def plain(self, template: str, status: int, values: Mapping[str, Any]) -> HTMLResponse:
        """Fill a template that needs no visitor."""
        return HTMLResponse(self._templates.get_template(template).render(**values), status)


class Times:
    """Writes instants for people. A script brings the distances up to date while the page is open."""

    def __init__(self, zone: tzinfo, now: datetime) -> None:
        self._zone = zone
        self._now = now

    def when(self, instant: datetime | None) -> Markup:
        """Write the distance from now, and the local time beside it."""
        if instant is None:
            return Markup('<span class="none">-</span>')
        return Markup(
            '<time class="when" datetime="{}" title="{}">'
            '<span data-distance>{}</span> <span class="clock">{}</span></time>'
        ).format(
            format_instant(instant), self.local(instant), describe_distance(instant, self._now), self.clock(instant)
        )

    def clock(self, instant: datetime) -> str:
        """Write the time of today, or day and time of another day."""
        local, now = instant.astimezone(self._zone), self._now.astimezone(self._zone)
        if local.date() == now.date():
            return f"{local:%H:%M:%S}"
        return f"{local:%a %d %b, %H:%M}" if local.year == now.year else f"{local:%d %b %Y, %H:%M}"

    def local(self, instant: datetime) -> str:
        """Write the whole local time with its zone."""
        local = instant.astimezone(self._zone)
        return f"{local:%a %Y-%m-%d %H:%M:%S} {local.tzname()}"

    def field_time(self, instant: datetime) -> str:
        """Write the local time as a field of a form has it, and a filter reads it."""
        return f"{instant.astimezone(self._zone):%Y-%m-%dT%H:%M:%S}"


def here_with_query(visit: Visit) -> str:
    """Return the page's own path, with its query, without the prefix."""
    query = visit.request.url.query
    return str(visit.request.scope["path"]) + (f"?{query}" if query else "")


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else describe_duration(timedelta(seconds=value))
