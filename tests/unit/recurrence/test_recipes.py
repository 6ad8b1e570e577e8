"""The recipes of docs/recurrence.md ring when the document says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.recurrence.reading import rings

DOCUMENT = Path(__file__).parents[3] / "docs" / "recurrence.md"
RECIPE = re.compile(r"```json\n(?P<fields>.*?)\n```\n\nrings at (?P<instants>[^…\n]*) …")


def recipes() -> list[tuple[dict[str, Any], list[str]]]:
    text = DOCUMENT.read_text(encoding="utf-8")
    found = [(json.loads(recipe["fields"]), recipe["instants"].split(", ")) for recipe in RECIPE.finditer(text)]
    assert len(found) == text.count("```json")
    return found


@pytest.mark.parametrize(("fields", "instants"), recipes())
def test_a_recipe_rings_when_the_document_says(fields: dict[str, Any], instants: list[str]) -> None:
    assert [ring.replace(" ", "T") + "Z" for ring in rings(len(instants), **fields)] == instants
