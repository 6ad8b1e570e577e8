"""The generated documents: fresh, complete, and valid by AsyncAPI's own parser."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from pydantic import BaseModel

from shared.contract.messages import Outcome, ScheduleReply, Webhook
from shared.contract.names import Names
from tests.support.eventually import PATIENCE
from tests.support.npm_project import installed_project
from tests.support.services import ROOT
from tools.contract.asyncapi import asyncapi
from tools.contract.examples import EXAMPLES
from tools.contract.files import DOCS, contract_files
from tools.contract.schemas import MODELS, schema_of

pytestmark = pytest.mark.xdist_group("documents")  # one worker: its tests share what takes long to start
EVERY_MODEL = pytest.mark.parametrize("model", [*MODELS, Webhook], ids=lambda model: model.__name__)
EVERY_MESSAGE = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)


def test_the_documents_say_what_the_models_say() -> None:
    wanted = contract_files()
    written = [DOCS / "asyncapi.yaml", DOCS / "openapi.yaml", *DOCS.glob("schemas/*.json")]
    there = {path: path.read_text(encoding="utf-8") for path in written}
    stale = sorted(path.name for path in wanted.keys() | there.keys() if wanted.get(path) != there.get(path))
    assert not stale, "run `make contract`"


@EVERY_MODEL
def test_every_field_has_a_description_and_examples_that_are_right(model: type[BaseModel]) -> None:
    schema = model.model_json_schema()
    for name, field in schema["properties"].items():
        assert field.get("description"), name
        assert field.get("examples"), name
        for example in field["examples"]:
            Draft202012Validator({**field, "$defs": schema.get("$defs", {})}, validate_formats=True).validate(example)


@EVERY_MESSAGE
def test_every_message_has_examples_and_its_schema_takes_them(model: type[BaseModel]) -> None:
    schema = schema_of(model)
    assert EXAMPLES[model.__name__]
    for example in EXAMPLES[model.__name__].values():
        Draft202012Validator(schema, validate_formats=True).validate(example)
        model.model_validate_json(json.dumps(example))


def test_every_outcome_is_explained() -> None:
    description = schema_of(ScheduleReply)["$defs"]["Outcome"]["description"]
    assert re.findall(r"^- (\w+): \S", description, re.MULTILINE) == list(Outcome)


def test_the_document_names_only_what_the_server_has() -> None:
    text = asyncapi()["info"]["description"]
    named = set(re.findall(r"schedule[r]?[.]\w+", text))
    assert {"schedule.commands", "schedule.events", "scheduler.unrouted"} <= named
    assert named <= {*Names().exchanges, *Names().queues}


@pytest.mark.parametrize(
    ("fields", "right"),
    [
        ({"at": "2030-01-01T00:00:00Z"}, True),
        ({"at": "2030-01-01T00:00:00Z", "rrule": None}, True),
        ({}, False),
        ({"at": "2030-01-01T00:00:00Z", "cron": "@daily"}, False),
        ({"cron": "@daily", "topic": "two words"}, False),
        ({"cron": "@daily", "webhook": {"url": "ftp://example.com"}}, False),
        ({"cron": "@daily", "colour": "red"}, False),
    ],
)
def test_the_schema_of_a_request_knows_right_from_wrong(fields: dict[str, Any], right: bool) -> None:
    [request] = [model for model in MODELS if model.__name__ == "ScheduleRequest"]
    assert Draft202012Validator(schema_of(request)).is_valid({"id": "job", **fields}) is right


@pytest.fixture(scope="module")
def validator() -> Path:
    return installed_project(ROOT / "tools" / "contract" / "validator")


def validate(validator: Path, document: Path) -> "subprocess.CompletedProcess[str]":
    command = ["node", "validate.mjs", str(document)]
    return subprocess.run(command, cwd=validator, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_the_document_is_valid_asyncapi(validator: Path) -> None:
    done = validate(validator, DOCS / "asyncapi.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"AsyncAPI 3.0.0, {len(MODELS)} messages" in done.stdout


def test_the_validator_finds_what_is_wrong(validator: Path, tmp_path: Path) -> None:
    document = asyncapi()
    del document["components"]["messages"]["ScheduleDue"]
    document["components"]["messages"]["ScheduleCancel"]["examples"][0]["payload"] = {"id": 42}
    broken = tmp_path / "asyncapi.json"
    broken.write_text(json.dumps(document))
    done = validate(validator, broken)
    assert done.returncode == 1
    assert "ScheduleDue" in done.stdout + done.stderr
