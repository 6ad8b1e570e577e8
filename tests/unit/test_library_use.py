"""Libraries are declared in pyproject.toml, not patched, and used without their private names."""

import ast
import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from types import FunctionType

import pytest

from shared.runtime.library_versions import TESTED_VERSIONS
from tests.support.services import ROOT

PACKAGES = ["shared", "consumer", "producer", "delivery", "cli", "console"]
CLIENT = ROOT / "client" / "duebell"
# Private by their look alone: all of them are documented.
DOCUMENTED = {"os._exit", "_asdict", "_replace", "_fields"}


def files(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and not name.endswith("_") and name not in DOCUMENTED


def is_of_duebell(module: str) -> bool:
    return module.partition(".")[0] in {*PACKAGES, "duebell"}


class Names(ast.NodeVisitor):
    """What a source imports from libraries, and what its classes have: fields, and private names of any kind."""

    def __init__(self, tree: ast.AST) -> None:
        self.imported: set[str] = set()
        self.fields: set[str] = set()
        self.private: set[str] = set()
        self.visit(tree)

    def visit_Import(self, node: ast.Import) -> None:
        self.imported |= {
            (one.asname or one.name).partition(".")[0] for one in node.names if not is_of_duebell(one.name)
        }

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level == 0 and not is_of_duebell(node.module or ""):
            self.imported |= {one.asname or one.name for one in node.names}

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for inner in ast.walk(node):
            match inner:
                case ast.AnnAssign(target=ast.Name(id=name)) if inner in node.body:
                    self.fields.add(name)
                case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                    self.fields.add(name)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    self.private |= {name} if is_private(name) else set()
        self.private |= {name for name in self.fields if is_private(name)}
        self.generic_visit(node)


def root_of(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_foreign(node: ast.Attribute, names: Names, fields: set[str]) -> bool:
    """Return whether the code reads a private name of a library, or changes an attribute of one."""
    if isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}:
        return False
    if isinstance(node.ctx, ast.Load):
        return is_private(node.attr) and ast.unparse(node) not in DOCUMENTED and node.attr not in names.private
    return root_of(node) in names.imported or node.attr not in {*fields, *names.fields, "__doc__"}


def offences(source: str, fields: set[str]) -> list[str]:
    """`fields` are those of Duebell's own classes: what may be assigned from elsewhere."""
    tree = ast.parse(source)
    names = Names(tree)
    found = re.findall(r"noqa:[^#\n]*SLF001|type: ignore\[[^\]]*method-assign", source)
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(level=0, module=str(module)) if not is_of_duebell(module):
                parts = [*module.split("."), *(one.name for one in node.names)]
                found += [f"from {module} import {part}" for part in parts if is_private(part)]
            case ast.Import():
                whole = [one.name for one in node.names if not is_of_duebell(one.name)]
                found += [f"import {name}" for name in whole if any(map(is_private, name.split(".")))]
            case ast.Attribute() if is_foreign(node, names, fields):
                found.append(ast.unparse(node))
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[target, *_]):
                if root_of(target) not in {"self", "cls"}:
                    found.append(ast.unparse(node))
    return found


@cache
def our_fields() -> frozenset[str]:
    return frozenset(name for path in files(*PACKAGES) for name in Names(ast.parse(path.read_text())).fields)


@pytest.mark.parametrize("path", files(*PACKAGES), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_library_is_patched_and_no_private_name_of_one_is_used(path: Path) -> None:
    assert offences(path.read_text(), set(our_fields())) == []


@pytest.mark.parametrize(
    "source",
    [
        "import aiormq.connection\naiormq.connection.FrameReceiver = Other",
        "import aiormq as a\ndel a.connection.FrameReceiver",
        "from pamqp.commands import Basic\nBasic.Deliver.unmarshal = decode",
        "from pamqp.commands import Basic\nsetattr(Basic.Deliver, 'unmarshal', decode)",
        "from aiormq.tools import _private",
        "from aiormq._tools import public",
        "import aiormq._tools",
        "def f(channel):\n    channel._on_confirm_frame = g",
        "async def f(channel):\n    return await channel._get_frame()",
        "def f(channel):\n    channel.delivery_tag += 1",
        "class A:\n    def __init__(self, channel):\n        channel.frames.put = self.take",
        "class A:\n    def f(self):\n        self._channel.frames.put = self.take",
        "x = queue._queue  # noqa: SLF001",
        "put = 1  # type: ignore[assignment, method-assign]",
    ],
)
def test_a_patch_is_found(source: str) -> None:
    assert offences(source, set(our_fields()))


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    _one: int\n    def other(self, a):\n        return a._one",
        "class A:\n    one: int\ndef f(a):\n    a.one = 1",
        "import os\nos._exit(1)",
        "from shared import _private",
    ],
)
def test_code_of_duebell_may_change_its_own_attributes(source: str) -> None:
    assert offences(source, set()) == []


def own_classes() -> Iterator[type]:
    for path in files(*PACKAGES):
        if path.stem != "__main__":
            module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            yield from (
                each for each in vars(module).values() if isinstance(each, type) and is_of_duebell(each.__module__)
            )


def private_names_of(library_class: type) -> set[str]:
    """The private names that a class has, and those that its methods use."""
    methods = [each for each in vars(library_class).values() if isinstance(each, FunctionType)]
    spoken = {name for method in methods for name in method.__code__.co_names}
    return {name for name in {*vars(library_class), *spoken} if is_private(name)}


def private_names_used_by(our_class: type) -> set[str]:
    methods = {
        name: each
        for name, each in vars(our_class).items()
        if isinstance(each, FunctionType) and is_of_duebell(each.__module__)
    }
    spoken = {name for method in methods.values() for name in method.__code__.co_names}
    return {name for name in {*methods, *spoken} if is_private(name)}


def test_a_class_that_extends_a_librarys_shares_no_private_name_with_it() -> None:
    extended: set[str] = set()
    for own in own_classes():
        for base in own.__mro__:
            if not is_of_duebell(base.__module__) and base.__module__.partition(".")[0] not in {"builtins", "typing"}:
                shared = private_names_used_by(own) & private_names_of(base)
                assert not shared, f"{own.__name__} and {base.__name__}: {sorted(shared)}"
                extended.add(own.__name__)
    assert {"SplittingReader", "WireChannel", "WireConnection"} <= extended


def imported(*paths: Path) -> set[str]:
    """The top-level names of imported libraries."""
    modules: set[str] = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Import():
                    modules |= {one.name for one in node.names}
                case ast.ImportFrom(level=0, module=str(module)):
                    modules.add(module)
    tops = {module.partition(".")[0] for module in modules}
    return {top for top in tops if top not in sys.stdlib_module_names and not is_of_duebell(top)}


def declared(path: Path, *extras: str) -> dict[str, str]:
    project = tomllib.loads(path.read_text())["project"]
    lines = [*project["dependencies"], *(each for extra in extras for each in project["optional-dependencies"][extra])]
    return {re.split(r"[<>=!~\[]", line)[0]: line for line in lines}


@pytest.mark.parametrize(
    ("project", "extras", "sources"),
    [("pyproject.toml", [], files(*PACKAGES)), ("client/pyproject.toml", ["postgres"], sorted(CLIENT.rglob("*.py")))],
    ids=["services", "client"],
)
def test_every_library_that_is_imported_is_declared(project: str, extras: list[str], sources: list[Path]) -> None:
    known = packages_distributions()
    needed = {known[name][0].replace("_", "-").lower() for name in imported(*sources)}
    assert len(needed) > 2
    assert needed - declared(ROOT / project, *extras).keys() == set()


def test_the_versions_that_a_service_starts_with_are_those_that_are_declared() -> None:
    requirements = declared(ROOT / "pyproject.toml")
    assert {requirements[name] for name in TESTED_VERSIONS} == {
        f"{name}>={first},<{end}" for name, (first, end) in TESTED_VERSIONS.items()
    }
