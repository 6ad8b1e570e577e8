"""An operation of the HTTP API: who may call it, how its request is read, and how it is answered."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec
import orjson
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.access.users import user_of_token
from console.errors import ApiFailure
from console.web.context import Console, Visit, Visitor
from console.web.queries import Filters
from console.web.visitors import comes_from_proxy, visitor_of
from shared.recurrence.zones import load_zone

API_PATH = "/api/v1"
BEARER = "bearer "
# A payload may have its limit; the rest of a command is far smaller.
MAX_BYTES_BESIDE_PAYLOAD = 64 * 1024


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string", "maxLength": 200})
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A request of a user who may make it. The values of `content` are JSON text: numbers keep all their digits."""

    visit: Visit
    content: Mapping[str, msgspec.Raw]

    @property
    def filters(self) -> Filters:
        return Filters(self.visit.query, self.visit.zone)

    def id(self) -> str:
        """Return the parameter `id`. Raises ApiFailure if it cannot be the id of anything."""
        text = self.visit.query.get("id", "")
        if not 1 <= len(text) <= 200 or "\0" in text:
            raise ApiFailure(400, "id: 1 to 200 characters are needed")
        return text


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered. `raw` has fields that are JSON text already."""

    model: BaseModel
    status: int = 200
    raw: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> Response:
        if not self.raw:
            return Response(self.model.model_dump_json(), self.status, media_type="application/json")
        fields = {**self.model.model_dump(mode="json"), **{n: orjson.Fragment(text) for n, text in self.raw.items()}}
        return Response(orjson.dumps(fields), self.status, media_type="application/json")


Handle: TypeAlias = Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`answers` has the model of each status that is no failure. A viewer may call it, unless it `acts`."""

    method: str
    path: str
    summary: str
    handle: Handle
    answers: Mapping[int, type[BaseModel]]
    parameters: tuple[Parameter, ...] = ()
    body: type[BaseModel] | None = None
    acts: bool = False
    failures: tuple[int, ...] = ()

    def route(self) -> Route:
        async def endpoint(request: Request) -> Response:
            visit = _visit_of(request)
            if self.acts and not visit.user.may_act:
                raise ApiFailure(403, "The role of this user is viewer: it may read, and not act.")
            content: Mapping[str, msgspec.Raw] = {}
            if self.body is not None:
                _require_own_json(request)
                content = await _read_content(request, visit.console)
            else:
                visit = _in_zone(visit)
            return (await self.handle(Call(visit, content))).response()

        return Route(API_PATH + self.path, endpoint, methods=[self.method], name=f"{self.method} {self.path}")


def _visit_of(request: Request) -> Visit:
    console: Console = request.app.state.console
    now = datetime.now(UTC)
    visitor = _visitor_of(request, console, now)
    if visitor is None:
        raise ApiFailure(401, "Give the token of a user as `Authorization: Bearer TOKEN`.")
    return Visit(request, console, visitor, load_zone("UTC"), now)


def _visitor_of(request: Request, console: Console, now: datetime) -> Visitor | None:
    """Return the user of the token; without a token the visitor that the pages would see. A proxy that knows its users
    may pass on how they showed it who they are: that is no token.
    """
    given = request.headers.get("Authorization", "")
    is_token = given[: len(BEARER)].lower() == BEARER
    user = user_of_token(given[len(BEARER) :].strip(), console.users) if is_token else None
    if user is not None:
        return Visitor(user, "", "", has_session=False)
    return visitor_of(request, console, now) if not given or comes_from_proxy(request, console) else None


def _in_zone(visit: Visit) -> Visit:
    """Read the parameter `timezone`, in which local times of parameters and of texts are."""
    name = visit.query.get("timezone", "")
    if not name:
        return visit
    try:
        return replace(visit, zone=load_zone(name))
    except ValueError as error:
        raise ApiFailure(400, f"timezone: {error}") from None


def _require_own_json(request: Request) -> None:
    """Refuse what a page of another site could make a browser send: JSON is asked for first, and is not allowed."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
        raise ApiFailure(403, "Another site may not use the API with the rights of its visitor.")
    if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
        raise ApiFailure(415, "Content-Type: must be application/json")


async def _read_content(request: Request, console: Console) -> Mapping[str, msgspec.Raw]:
    max_bytes = console.settings.max_payload_bytes + MAX_BYTES_BESIDE_PAYLOAD
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise ApiFailure(413, f"body: has more than {max_bytes:,} bytes")
    try:
        return msgspec.json.decode(bytes(body), type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiFailure(400, f"body: must be a JSON object: {error}") from None
