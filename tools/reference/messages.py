"""The fields of every message: from the models that the services read and write them with."""

import json
from typing import Any

from tools.contract.schemas import MODELS, all_schemas
from tools.reference.markdown import code, page, table

_LIMITS = {
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "maxProperties": "at most {} of them",
}


def messages_page() -> str:
    schemas = all_schemas()
    names = [model.__name__ for model in MODELS]
    sections = [_section(name, schemas[name], schemas) for name in (*names, "Webhook")]
    return page(
        "Fields of the messages",
        "shared/contract/messages.py",
        "For machines: [asyncapi.yaml](../asyncapi.yaml), and a JSON Schema for each message, linked below. What the "
        "messages do: [messages](../messages.md).",
        *sections,
    )


def _section(name: str, schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = [
        (
            code(field),
            _kind(about, schemas),
            _default(about, field in required),
            about.get("description", ""),
            _example(about),
        )
        for field, about in schema["properties"].items()
    ]
    summary = " ".join(str(schema.get("description", "")).split())
    link = "" if name == "Webhook" else f" ([JSON Schema](../schemas/{name}.json))"
    return f"## {name}\n\n{summary}{link}\n\n{table(('field', 'type', 'default', 'meaning', 'example'), rows)}"


def _kind(about: dict[str, Any], schemas: dict[str, Any]) -> str:
    if reference := about.get("$ref"):
        name = reference.rpartition("/")[2]
        target = schemas[name]
        return ", ".join(code(value) for value in target["enum"]) if "enum" in target else f"[{name}](#{name.lower()})"
    if "anyOf" in about:
        return " or ".join(_kind(each, schemas) for each in about["anyOf"] if each.get("type") != "null")
    if "const" in about:
        return code(str(about["const"]))
    if "enum" in about:
        return ", ".join(code(str(value)) for value in about["enum"])
    kind = {"array": "list", "object": "object", "string": "text", "null": "`null`"}.get(
        about.get("type", ""), str(about.get("type", "any JSON value"))
    )
    if about.get("format"):
        kind = str(about["format"])
    limits = [words.format(f"{about[name]:,}") for name, words in _LIMITS.items() if name in about]
    return ", ".join([kind, *limits])


def _default(about: dict[str, Any], is_required: bool) -> str:
    if is_required:
        return "required"
    return code(json.dumps(about["default"])) if about.get("default") is not None else ""


def _example(about: dict[str, Any]) -> str:
    examples = about.get("examples") or [None]
    return code(json.dumps(examples[0])) if examples[0] is not None else ""
