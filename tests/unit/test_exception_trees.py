"""The module `errors` of each package draws all exceptions of the package."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.services import ROOT

PACKAGES = ["cli", "client/duebell", "console", "consumer", "delivery", "producer", "shared", "stack"]


def exceptions_of(directory: Path) -> set[str]:
    """Return the public classes that derive from an exception of Python, or from another of these classes."""
    trees = [ast.parse(file.read_text()) for file in directory.rglob("*.py")]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found: set[str] = {"Exception", "ValueError", "ConnectionError", "OSError", "TimeoutError", "RuntimeError"}
    known = len(found)
    while True:
        found |= {node.name for node in classes if found & {ast.unparse(base) for base in node.bases}}
        if len(found) == known:
            break
        known = len(found)
    return {node.name for node in classes if node.name in found and not node.name.startswith("_")}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_module_errors_draws_all_exceptions_of_its_package(package: str) -> None:
    exceptions = exceptions_of(ROOT / package)
    errors = ROOT / package / "errors.py"
    text = (ast.get_docstring(ast.parse(errors.read_text())) or "") if errors.exists() else ""
    drawn = set(re.findall(r"^[ │├└─]*(\w+)", text, re.MULTILINE))
    assert exceptions - drawn == set()


def test_the_exceptions_of_a_package_are_found() -> None:
    assert {"DeliveryError", "LookupFailed", "NotInPlace"} <= exceptions_of(ROOT / "delivery")
    assert exceptions_of(ROOT / "producer") == set()
