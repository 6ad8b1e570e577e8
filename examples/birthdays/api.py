"""The HTTP API: users, and with each the next birthday. Every answer comes at once; what Duebell makes of a change
comes later, through its reply.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fastapi import APIRouter, FastAPI

from examples.birthdays.api_errors import BadField, Problems, UserNotFound, answer_errors
from examples.birthdays.api_models import NewUser, Profile, ShownGreeting, UserChanges, Verdicts
from examples.birthdays.commands import Terms
from examples.birthdays.database import database_now, transaction
from examples.birthdays.greetings import read_greetings
from examples.birthdays.occurrences import local_day
from examples.birthdays.people import BIRTHDAY, User
from examples.birthdays.profiles import Profiles
from examples.birthdays.verdicts import count_verdicts

if TYPE_CHECKING:
    from examples.birthdays.database import Pool
    from examples.birthdays.profiles import Clock

_BAD: dict[int | str, dict[str, Any]] = {400: {"model": Problems, "description": "What is wrong, field by field"}}
_BAD_OR_MISSING = {**_BAD, 404: {"model": Problems, "description": "There is no such user"}}


def api(pool: "Pool", terms: Terms, clock: "Clock" = database_now) -> APIRouter:
    router = APIRouter()
    profiles = Profiles(pool, terms, clock)

    @router.post("/user", status_code=201, responses=_BAD)
    async def create_user(new: NewUser) -> Profile:
        stored, now = await profiles.create(lambda now: _checked(new.to_user(), now))
        return Profile.of(stored, terms.greeting_time, now)

    @router.get("/user/{id}", responses=_BAD_OR_MISSING)
    async def read_user(id: UUID) -> Profile:  # noqa: A002 - its name in the address
        return _shown(await profiles.read(id), terms)

    @router.put("/user/{id}", responses=_BAD_OR_MISSING)
    async def update_user(id: UUID, changes: UserChanges) -> Profile:  # noqa: A002
        return _shown(await profiles.update(id, lambda user, now: _checked(changes.applied_to(user), now)), terms)

    @router.delete("/user/{id}", status_code=204, responses=_BAD_OR_MISSING)
    async def delete_user(id: UUID) -> None:  # noqa: A002
        if not await profiles.delete(id):
            raise UserNotFound

    @router.get("/user/{id}/greetings", responses=_BAD_OR_MISSING)
    async def read_greetings_of_user(id: UUID) -> list[ShownGreeting]:  # noqa: A002
        """Return the greetings of a user, the newest first, a hundred at most."""
        if await profiles.read(id) is None:
            raise UserNotFound
        async with transaction(pool) as connection:
            return [ShownGreeting.of(greeting) for greeting in await read_greetings(connection, id)]

    @router.get("/verdicts")
    async def verdicts() -> Verdicts:
        async with transaction(pool) as connection:
            return Verdicts.model_validate(await count_verdicts(connection), from_attributes=True)

    return router


def web_app() -> FastAPI:
    """Make the web application, without routes. Its OpenAPI page is at /docs, the document at /openapi.json."""
    app = FastAPI(title="Birthdays", summary="Greets people at nine in the morning where they live.", version="1")
    answer_errors(app)
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        """Return the document without FastAPI's own 422, which is a 400 here."""
        document = describe()
        for operations in document["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
        for unused in ("HTTPValidationError", "ValidationError"):
            document.get("components", {}).get("schemas", {}).pop(unused, None)
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend it
    return app


def _shown(found: tuple[Any, datetime] | None, terms: Terms) -> Profile:
    if found is None:
        raise UserNotFound
    return Profile.of(found[0], terms.greeting_time, found[1])


def _checked(user: User, now: datetime) -> User:
    """Check the user. Today is what the calendar shows where the user lives."""
    for kind, day in user.dates.items():
        if day > local_day(now, user.timezone):
            raise BadField("dateOfBirth" if kind == BIRTHDAY else f"otherDates.{kind}", "is in the future")
    return user
