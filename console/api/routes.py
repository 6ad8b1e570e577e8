"""The addresses of the HTTP API."""

from collections.abc import Mapping

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from console.api.commanding import ACTING_OPERATIONS
from console.api.openapi import openapi
from console.api.operation import API_PATH
from console.api.reading import READING_OPERATIONS
from console.errors import ApiFailure

OPERATIONS = (*READING_OPERATIONS, *ACTING_OPERATIONS)
_DOCUMENT = orjson.dumps(openapi(OPERATIONS))


def api_routes() -> list[BaseRoute]:
    return [Route(f"{API_PATH}/openapi.json", _show_document), *(one.route() for one in OPERATIONS)]


async def _show_document(_: Request) -> Response:
    """Show the document. It is the same for every installation, and tells a stranger nothing."""
    return Response(_DOCUMENT, media_type="application/json")


def failure_response(status: int, *errors: str, headers: Mapping[str, str] | None = None) -> Response:
    asks = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return Response(orjson.dumps({"errors": errors}), status, {**asks, **(headers or {})}, "application/json")


async def show_api_failure(_: Request, error: Exception) -> Response:
    if not isinstance(error, ApiFailure):
        raise error
    return failure_response(error.status, *error.errors)
