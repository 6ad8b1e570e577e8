"""The recipes of docs/recurrence.md have the occurrences that the document lists."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.recurrence.reading import list_times

DOCUMENT = Path(__file__).parents[3] / "docs" / "recurrence.md"
RECIPE = re.compile(r"```json\n(?P<fields>.*?)\n```\n\nrings at (?P<instants>[^…\n]*) …")


def recipes() -> list[tuple[dict[str, Any], list[str]]]:
    text = DOCUMENT.read_text(encoding="utf-8")
    found = [(json.loads(recipe["fields"]), recipe["instants"].split(", ")) for recipe in RECIPE.finditer(text)]
    assert len(found) == text.count("```json")
    return found


@pytest.mark.parametrize(("fields", "instants"), recipes())
def test_the_occurrences_of_a_recipe_are_those_of_the_document(fields: dict[str, Any], instants: list[str]) -> None:
    assert [occurrence.replace(" ", "T") + "Z" for occurrence in list_times(len(instants), **fields)] == instants
