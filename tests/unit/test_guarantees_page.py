"""Every test that docs/guarantees.md names exists, and every promise of the page names a test."""

import ast
import re
from functools import cache

import pytest

from tests.support.services import ROOT

PAGE = (ROOT / "docs/guarantees.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))


@cache
def defined_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text())
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_test_that_is_named_is_there(file: str, test: str) -> None:
    assert test in defined_in(file)


def paragraphs() -> list[str]:
    """Each failure is one, and begins with its name."""
    [section] = re.findall(r"^## Failures, one by one\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    return [paragraph for paragraph in section.split("\n\n") if paragraph.startswith("**")]


def test_every_promise_and_every_failure_names_its_test_or_says_that_there_is_none() -> None:
    [table] = re.findall(r"^## The promises\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    rows = [line for line in table.splitlines() if line.startswith("| **")]
    assert len(rows) >= 12
    assert [row for row in rows if "::test_" not in row] == []
    without = [text for text in paragraphs() if "::test_" not in text]
    assert {text.split("**")[1] for text in without} == {
        "A node of a broker's cluster that is lost.",
        "A RabbitMQ 3.10 that cannot declare queues any more.",
    }
    assert len(paragraphs()) >= 45
