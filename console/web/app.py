"""The web application: its addresses, its files, and what visitors read when something fails."""

from collections.abc import Mapping

import asyncpg
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from console.api.operation import API_PATH
from console.api.routes import api_routes, failure_response, show_api_failure
from console.errors import ApiFailure, NotSent, PageFailure
from console.pages import bulks, delayed, deliveries, history, kept, log_in, new, now, schedule, schedules
from console.web.context import Console
from console.web.rendering import STATIC
from console.web.responses import Surroundings
from console.web.routing import action, page
from shared.postgres.errors import RETRYABLE_ERRORS, describe
from shared.runtime.logs import get_log


def make_app(console: Console) -> ASGIApp:
    app = Starlette(
        routes=routes(),
        exception_handlers={
            ApiFailure: show_api_failure,
            PageFailure: _show_failure,
            HTTPException: _show_http_error,
            NotSent: _show_not_sent,
            TimeoutError: _show_store_away,
            asyncpg.PostgresError: _show_store_away,
            asyncpg.InterfaceError: _show_store_away,
            OSError: _show_store_away,
            Exception: _show_bug,
        },
    )
    app.state.console = console
    return Surroundings(app, console.settings.prefix, console.metrics)


def routes() -> list[BaseRoute]:
    return [
        page("/", now.show),
        page("/now/live", now.stream),
        page("/schedules", schedules.show),
        page("/schedules/live", schedules.stream),
        action("/schedules", schedules.act),
        page("/bulk", bulks.show),
        page("/bulk/live", bulks.stream),
        action("/bulk", bulks.act),
        page("/schedule", schedule.show),
        page("/schedule/live", schedule.stream),
        action("/schedule", schedule.act),
        page("/new", new.show),
        action("/new", new.create),
        action("/new/preview", new.preview),
        page("/deliveries", deliveries.show),
        page("/deliveries/live", deliveries.stream),
        action("/deliveries", deliveries.act),
        page("/delivery", deliveries.show_one),
        page("/delivery/live", deliveries.stream_one),
        page("/delayed", delayed.show),
        page("/delayed/live", delayed.stream),
        action("/delayed", delayed.act),
        page("/parked", kept.show_parked),
        action("/parked", kept.act_on_parked),
        page("/unrouted", kept.show_unrouted),
        action("/unrouted", kept.act_on_unrouted),
        page("/history", history.show),
        page("/history/live", history.stream),
        Route("/log-in", log_in.show_log_in, methods=["GET"]),
        Route("/log-in", log_in.log_in, methods=["POST"]),
        action("/log-out", log_in.log_out, needs_operator=False),
        action("/preferences", log_in.set_preferences, needs_operator=False),
        *api_routes(),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]


async def _show_failure(request: Request, error: Exception) -> Response:
    if not isinstance(error, PageFailure):
        raise error
    return _failure_page(request, error.status, error.title, error.text)


async def _show_http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return _failure_page(request, 404, "Not found", "There is no such page.")
    detail, headers = (error.detail, error.headers) if isinstance(error, HTTPException) else ("", None)
    return _failure_page(request, status, detail, "The console does not take such a request.", headers)


async def _show_not_sent(request: Request, error: Exception) -> Response:
    get_log().warning("command_not_sent", error=describe(error))
    text = f"{error}. It was not done, or not whole: try again. See the page Now for what is missing."
    return _failure_page(request, 503, "RabbitMQ did not take it", text)


async def _show_store_away(request: Request, error: Exception) -> Response:
    console: Console = request.app.state.console
    console.metrics.errors.inc()
    get_log().warning("page_not_read", path=request.scope["path"], error=describe(error))
    text = (
        f"Postgres did not answer in time, or refused: {describe(error)}. The page may be there in a moment: reload it."
    )
    status = 503 if isinstance(error, (*RETRYABLE_ERRORS, TimeoutError)) else 500
    return _failure_page(request, status, "The database cannot be read", text)


async def _show_bug(request: Request, error: Exception) -> Response:
    console: Console = request.app.state.console
    console.metrics.errors.inc()
    get_log().error("page_failed", path=request.scope["path"], error=describe(error), exc_info=error)
    text = "This is a fault of the console. Its log has the details, under the event page_failed."
    return _failure_page(request, 500, "This page could not be made", text)


def _failure_page(
    request: Request, status: int, title: str, text: str, headers: Mapping[str, str] | None = None
) -> Response:
    console: Console = request.app.state.console
    if request.scope["path"].startswith(f"{API_PATH}/"):
        return failure_response(status, f"{title}: {text}", headers=headers)
    values = {"status": status, "title": title, "text": text}
    template = "failure_part.html" if request.headers.get("HX-Request") else "failure.html"
    return console.renderer.plain(template, status, values)
