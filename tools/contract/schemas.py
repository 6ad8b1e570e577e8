"""JSON Schemas of the messages, from the models that the services use."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from shared.contract import messages
from tools.contract.examples import EXAMPLES

COMMANDS: tuple[type[BaseModel], ...] = (
    messages.ScheduleRequest,
    messages.ScheduleCancel,
    messages.SchedulePause,
    messages.ScheduleResume,
    messages.ScheduleTrigger,
    messages.ScheduleQuery,
    messages.ScheduleBulk,
)
EVENTS: tuple[type[BaseModel], ...] = (messages.ScheduleDue, messages.DeliveryCompleted, messages.DeliveryFailed)
MODELS: tuple[type[BaseModel], ...] = (*COMMANDS, messages.ScheduleReply, *EVENTS)


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of one message, complete in itself."""
    examples = list(EXAMPLES[model.__name__].values())
    content = {**model.model_json_schema(mode="validation"), "examples": examples}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:duebell:{model.__name__}",
        **_without_titles(content),
        "title": model.__name__,
    }


def all_schemas() -> dict[str, Any]:
    """Return the schemas of all messages, and of what they share, each under its name."""
    template = "#/components/schemas/{model}"
    _, schemas = models_json_schema([(model, "validation") for model in MODELS], ref_template=template)
    return {name: _without_titles(schema) for name, schema in schemas["$defs"].items()}


def _without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """Leave out the titles of fields: pydantic repeats the name of every field there."""
    properties = schema.get("properties", {})
    bare = {name: {k: v for k, v in field.items() if k != "title"} for name, field in properties.items()}
    rest = {key: value for key, value in schema.items() if key not in {"title", "properties", "$defs"}}
    if "$defs" in schema:
        rest["$defs"] = {name: _without_titles(shared) for name, shared in schema["$defs"].items()}
    return {**rest, "properties": bare} if properties else rest
