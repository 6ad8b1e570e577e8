"""The contract as files: what docs/asyncapi.yaml and docs/schemas/ have to say, given the models. A test compares."""

import io
import json
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from console.api.openapi import openapi
from console.api.routes import OPERATIONS
from tools.contract.asyncapi import asyncapi
from tools.contract.schemas import MODELS, schema_of

DOCS = Path(__file__).parents[2] / "docs"
API_NOTICE = "# Written by `make contract` from console/api/. Do not edit.\n"
CONTRACT_NOTICE = "# Written by `make contract` from shared/contract/messages.py. Do not edit.\n"


def contract_files() -> dict[Path, str]:
    schemas = {
        DOCS / "schemas" / f"{model.__name__}.json": json.dumps(schema_of(model), indent=2, ensure_ascii=False) + "\n"
        for model in MODELS
    }
    return {
        DOCS / "asyncapi.yaml": CONTRACT_NOTICE + _as_yaml(asyncapi()),
        DOCS / "openapi.yaml": API_NOTICE + _as_yaml(openapi(OPERATIONS)),
        **schemas,
    }


def _as_yaml(document: dict[str, Any]) -> str:
    yaml = YAML()
    yaml.width = 120
    # The same object twice is written twice: readers should not have to follow anchors.
    yaml.representer.ignore_aliases = lambda _: True
    text = io.StringIO()
    # Through JSON, so that nothing but plain values is left.
    yaml.dump(_with_readable_texts(json.loads(json.dumps(document))), text)
    return text.getvalue()


def _with_readable_texts(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Have a text of several lines written as it stands, line by line."""
    match value:
        case dict():
            return {name: _with_readable_texts(each) for name, each in value.items()}
        case list():
            return [_with_readable_texts(each) for each in value]
        case str() if "\n" in value:
            return LiteralScalarString(value)
        case _:
            return value
