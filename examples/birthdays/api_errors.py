"""Answers to what is wrong: 400 with the fields named, 404, and 503 while the database is away."""

from collections.abc import Sequence
from typing import Any

import asyncpg
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel


class FieldProblem(BaseModel):
    field: str
    problem: str


class Problems(BaseModel):
    errors: list[FieldProblem]


class BadField(Exception):
    """A field that is well-formed, and wrong all the same."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class UserNotFound(Exception):
    pass


def answer_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def _(_: Request, error: RequestValidationError) -> JSONResponse:
        return _answer(400, [FieldProblem(field=_field(e["loc"]), problem=_problem(e)) for e in error.errors()])

    @app.exception_handler(BadField)
    async def _(_: Request, error: BadField) -> JSONResponse:
        return _answer(400, [FieldProblem(field=error.field, problem=error.problem)])

    @app.exception_handler(UserNotFound)
    async def _(_: Request, __: UserNotFound) -> JSONResponse:
        return _answer(404, [FieldProblem(field="id", problem="there is no such user")])

    async def away(_: Request, error: Exception) -> JSONResponse:
        structlog.get_logger().warning("database_away", problem=f"{type(error).__name__}: {error}")
        problems = Problems(errors=[FieldProblem(field="", problem="the database is away; try again")])
        return JSONResponse(problems.model_dump(), 503, headers={"Retry-After": "5"})

    for kind in (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.OperatorInterventionError, OSError):
        app.add_exception_handler(kind, away)


def _answer(status: int, problems: list[FieldProblem]) -> JSONResponse:
    return JSONResponse(Problems(errors=problems).model_dump(), status)


def _field(location: Sequence[int | str]) -> str:
    """`body` or `path` comes first; where a key of a mapping is wrong, `[key]` comes last."""
    names = [str(part) for part in location[1:] if part != "[key]"]
    is_text = location[0] == "body" and names and names[0].isdigit() and len(names) == 1
    return "body" if not names or is_text else ".".join(names)


def _problem(error: dict[str, Any]) -> str:
    return str(error["msg"]).removeprefix("Value error, ")
