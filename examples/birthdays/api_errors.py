"""Answers to what is wrong, all of one shape: 400 with the fields named, 404, 503 while the database is away."""

import re
from typing import Any

import asyncpg
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException


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
        return _answer(400, [FieldProblem(field=_field(e), problem=_problem(e)) for e in error.errors()])

    @app.exception_handler(BadField)
    async def _(_: Request, error: BadField) -> JSONResponse:
        return _answer(400, [FieldProblem(field=error.field, problem=error.problem)])

    @app.exception_handler(UserNotFound)
    async def _(_: Request, __: UserNotFound) -> JSONResponse:
        return _answer(404, [FieldProblem(field="id", problem="there is no such user")])

    @app.exception_handler(HTTPException)
    async def _(request: Request, error: HTTPException) -> JSONResponse:
        field = "body" if error.status_code == 400 else ""
        answer = _answer(error.status_code, [FieldProblem(field=field, problem=str(error.detail))])
        answer.headers.update(error.headers or {})
        if error.status_code == 405 and (methods := _methods(app, request.url.path)):
            answer.headers["Allow"] = methods
        return answer

    async def away(_: Request, error: Exception) -> JSONResponse:
        structlog.get_logger().warning("database_away", problem=f"{type(error).__name__}: {error}")
        problems = Problems(errors=[FieldProblem(field="", problem="the database is away; try again")])
        return JSONResponse(problems.model_dump(), 503, headers={"Retry-After": "5"})

    for kind in (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.OperatorInterventionError, OSError):
        app.add_exception_handler(kind, away)


def _answer(status: int, problems: list[FieldProblem]) -> JSONResponse:
    return JSONResponse(Problems(errors=problems).model_dump(), status)


def _methods(app: FastAPI, path: str) -> str:
    """Return all methods that the address has. The framework's own answer names only those of the first route that
    fits.
    """
    found = (
        operations
        for template, operations in app.openapi()["paths"].items()
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path)
    )
    return ", ".join(sorted(method.upper() for operations in found for method in operations))


def _field(error: dict[str, Any]) -> str:
    """Return the field that the error is about. In pydantic's place `body` or `path` comes first. For a body that is
    not JSON a position follows; for a wrong key, `[key]`.
    """
    if error["type"] == "json_invalid":
        return "body"
    return ".".join(str(part) for part in error["loc"][1:] if part != "[key]") or "body"


def _problem(error: dict[str, Any]) -> str:
    return str(error["msg"]).removeprefix("Value error, ")
