"""The OpenAPI document of the HTTP API, written from its operations and the models of the messages. No I/O."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from console.api.models import Problems
from console.api.operation import API_PATH, Operation
from shared.version import VERSION

READ_FAILURES = (400, 401, 403, 503)
# As RFC 9110 has them: Python before 3.13 has older words, and the document is the same with every Python.
PHRASES = {413: "Content Too Large", 422: "Unprocessable Content"}
DESCRIPTION = """\
Reads what Duebell knows, and acts by the same AMQP commands that an application sends: a body is one of the messages, \
and the answer is the consumer's verdict. An id is given as a parameter, since it may have any character."""


def openapi(operations: Iterable[Operation]) -> dict[str, Any]:
    operations = list(operations)
    models = {model for one in operations for model in (*one.answers.values(), *([one.body] if one.body else []))}
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(API_PATH + one.path, {})[one.method.lower()] = _described(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Duebell", "version": VERSION, "description": DESCRIPTION},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "a token of a user of CONSOLE_USERS, from `python -m console make-token`",
                }
            },
            "schemas": _schemas({*models, Problems}),
        },
    }


def _described(one: Operation) -> dict[str, Any]:
    failures = {str(status): _answer(status, Problems) for status in (*READ_FAILURES, *one.failures)}
    described: dict[str, Any] = {
        "operationId": f"{one.method.lower()}{one.path.replace('/', '_')}",
        "summary": one.summary,
        "responses": failures | {str(status): _answer(status, model) for status, model in one.answers.items()},
    }
    if one.parameters:
        described["parameters"] = [
            {"name": p.name, "in": "query", "description": p.description, "required": p.is_required, "schema": p.schema}
            for p in one.parameters
        ]
    if one.body is not None:
        described["requestBody"] = {"required": True, "content": _content(one.body)}
    return described


def _answer(status: int, model: type[BaseModel]) -> dict[str, Any]:
    return {"description": PHRASES.get(status) or HTTPStatus(status).phrase, "content": _content(model)}


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}


def _schemas(models: set[type[BaseModel]]) -> dict[str, Any]:
    ordered = sorted(models, key=lambda model: model.__name__)
    _, schemas = models_json_schema(
        [(model, "validation") for model in ordered], ref_template="#/components/schemas/{model}"
    )
    found: dict[str, Any] = schemas["$defs"]
    return found
