"""Finds calls in the code of the services, for the pages about what they log and count."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("consumer", "producer", "delivery", "console", "shared")


@dataclass(frozen=True, slots=True)
class FoundCall:
    package: str
    node: ast.Call


def calls(wanted: Callable[[ast.Call], bool]) -> Iterator[FoundCall]:
    """Yield every call in the services' code for which `wanted` is true, in the order of files."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and wanted(node):
                    yield FoundCall(package, node)


def services(packages: set[str]) -> str:
    """Return how a table names the services. What is in `shared` is in all of them."""
    return "all" if "shared" in packages else ", ".join(package for package in PACKAGES if package in packages)
