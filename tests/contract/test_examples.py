"""Every example in the documents is run through the real consumer: taken, or rejected where the text says so."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from tests.support.application import Application
from tests.support.services import ROOT, running_consumer
from tests.support.stores import Site
from tools.contract.asyncapi import KEYS, asyncapi
from tools.contract.schemas import MODELS, schema_of

BLOCK = re.compile(r"(?P<before>[^\n]*)\n\n```json\n(?P<text>.*?)```", re.DOTALL)
SCHEMAS = {model.__name__: schema_of(model) for model in MODELS}


@dataclass(frozen=True, slots=True)
class Example:
    kind: str
    content: dict[str, Any]
    is_rejected: bool = False


def several(text: str) -> Iterator[dict[str, Any]]:
    """JSON documents, one after the other."""
    rest = text.strip()
    while rest:
        content, end = json.JSONDecoder().raw_decode(rest)
        yield content
        rest = rest[end:].strip()


def examples_of(page: str, kind: str | None = None) -> list[Example]:
    """In docs/messages.md the heading says which message it is; elsewhere it is a request, at times without its id."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [
        Example(kind or section.split("\n")[0].split(",")[0], content, "rejected" in block["before"])
        for section in text.split("\n## ")
        for block in BLOCK.finditer(section)
        for content in several(block["text"])
    ]
    assert len(found) >= text.count("```json") > 0
    return found


def examples_of_asyncapi() -> list[Example]:
    messages = asyncapi()["components"]["messages"]
    return [Example(name, each["payload"]) for name, message in messages.items() for each in message["examples"]]


@pytest.mark.parametrize(
    "examples",
    [
        pytest.param(examples_of_asyncapi(), id="asyncapi.yaml"),
        pytest.param(examples_of("docs/messages.md"), id="messages.md"),
        pytest.param(examples_of("docs/recurrence.md", "ScheduleRequest"), id="recurrence.md"),
        pytest.param(examples_of("README.md", "ScheduleRequest"), id="README.md"),
        pytest.param(examples_of("docs/how-to/remind-me.md", "ScheduleRequest"), id="remind-me.md"),
        pytest.param(examples_of("docs/how-to/every-weekday.md", "ScheduleRequest"), id="every-weekday.md"),
    ],
)
async def test_the_consumer_does_with_an_example_what_the_text_says(
    examples: list[Example], site: Site, app: Application, database: Any
) -> None:
    async with running_consumer(site):
        for example in examples:
            if example.kind in KEYS:
                await check_command(example, app, database)
            else:
                Draft202012Validator(SCHEMAS[example.kind], validate_formats=True).validate(example.content)


async def check_command(example: Example, app: Application, database: Any) -> None:
    content = {"id": "an-example", **example.content}
    await database.execute("delete from jobs")
    if example.kind != "ScheduleRequest":
        await app.ask({"id": content["id"], "every_seconds": 86400})
    if example.kind == "ScheduleResume":
        await app.ask({"id": content["id"]}, key=KEYS["SchedulePause"])
    reply = await app.ask(content, key=KEYS[example.kind], type=example.kind)
    assert (reply["outcome"] == "rejected") is example.is_rejected, (content, reply)
    assert reply["outcome"] != "duplicate", (content, reply)
