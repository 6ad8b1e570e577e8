"""A module that calls itself pure does no I/O: it imports no library for it, and no module that does."""

import ast
import re
from pathlib import Path

import grimp
import pytest

from tests.support.services import ROOT

PACKAGES = ("cli", "console", "consumer", "delivery", "producer", "shared")
IO_LIBRARIES = ("aio_pika", "aiohttp", "aiormq", "asyncpg", "httpx", "starlette", "uvicorn")
PURE = re.compile(r"\bPure\b")


def pure_modules() -> list[str]:
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    return sorted(name_of(file) for file in files if PURE.search(ast.get_docstring(ast.parse(file.read_text())) or ""))


def name_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)


def test_a_module_that_calls_itself_pure_imports_nothing_that_does_io(imports: grimp.ImportGraph) -> None:
    modules = pure_modules()
    assert len(modules) > 50
    chains = {
        module: chain
        for module in modules
        for library in IO_LIBRARIES
        if library in imports.modules and (chain := imports.find_shortest_chain(module, library))
    }
    assert chains == {}


def test_a_module_that_does_io_is_found(imports: grimp.ImportGraph) -> None:
    assert imports.find_shortest_chain("consumer.store.jobs", "asyncpg") is not None
