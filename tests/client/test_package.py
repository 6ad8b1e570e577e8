"""The package: alone, small, and in step with the services' own messages and names."""

import re
from pathlib import Path
from typing import Any

import pytest

from shared.contract import messages
from shared.contract.names import (
    BULK_KEY,
    CANCEL_KEY,
    PAUSE_KEY,
    QUERY_KEY,
    REQUEST_KEY,
    RESUME_KEY,
    TRIGGER_KEY,
    Names,
)
from tests.support.client_program import Installed
from tests.support.installed_packages import CLIENT

SCRIPT = Path(__file__).parent / "scripts" / "contract.py"
# Words for people, which may differ.
PROSE = {"title", "description", "examples"}


def bare(schema: object) -> object:
    match schema:
        case dict():
            properties = schema.get("properties", {})
            rest = {key: bare(value) for key, value in schema.items() if key not in PROSE | {"properties"}}
            return {**rest, **({"properties": {k: bare(v) for k, v in properties.items()}} if properties else {})}
        case list():
            return [bare(each) for each in schema]
        case _:
            return schema


@pytest.fixture
async def contract(python: Path, tmp_path: Path) -> dict[str, Any]:
    [report] = await Installed(python, {}, tmp_path).run(SCRIPT)
    return report


async def test_nothing_but_the_client_and_its_lock_is_installed(contract: dict[str, Any]) -> None:
    locked = re.findall(r"^([a-z0-9-]+)==", (CLIENT / "requirements.lock").read_text(), re.MULTILINE)
    assert {name.replace("_", "-") for name in contract["installed"]} == {*locked, "duebell"}
    assert not contract["services"]


async def test_the_client_and_the_services_speak_of_the_same_messages(contract: dict[str, Any]) -> None:
    for name, schema in contract["schemas"].items():
        assert bare(schema) == bare(getattr(messages, name).model_json_schema()), name


async def test_the_client_and_the_services_use_the_same_names(contract: dict[str, Any]) -> None:
    assert contract["exchanges"] == [Names().commands, Names().events]
    assert contract["keys"] == {
        "ScheduleRequest": REQUEST_KEY,
        "ScheduleCancel": CANCEL_KEY,
        "SchedulePause": PAUSE_KEY,
        "ScheduleResume": RESUME_KEY,
        "ScheduleTrigger": TRIGGER_KEY,
        "ScheduleQuery": QUERY_KEY,
        "ScheduleBulk": BULK_KEY,
    }


def test_it_depends_on_aio_pika_and_what_that_stands_on_and_pydantic_alone() -> None:
    [dependencies] = re.findall(r"^dependencies = \[(.*)\]", (CLIENT / "pyproject.toml").read_text(), re.MULTILINE)
    assert re.findall(r'"([a-z-]+)', dependencies) == ["aio-pika", "aiormq", "pydantic"]


def test_locks_name_no_index() -> None:
    locks = list(CLIENT.glob("*.lock"))
    assert len(locks) == 3
    assert all("://" not in lock.read_text() for lock in locks)
