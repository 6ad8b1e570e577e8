"""Every path, module and `Class.member` that a document names exists."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.services import ROOT

PACKAGES = [
    "bench",
    "cli",
    "console",
    "consumer",
    "delivery",
    "examples",
    "producer",
    "shared",
    "stack",
    "tests",
    "tools",
]
DIRECTORIES = [*PACKAGES, "client", "deploy", "docs", "grafana"]
PATH = re.compile(rf"(?<![\w./@-])(?:{'|'.join(DIRECTORIES)})/[\w./-]*\w")
MODULE = re.compile(rf"(?<![\w./@-])(?:{'|'.join(PACKAGES)})(?:\.[a-zA-Z_]\w*)+")
MEMBER = re.compile(r"([A-Z]\w*[a-z]\w*)\.([a-z_]\w*)(?:\(.*\))?")

# A name in a document that stands for one that a reader makes.
PLACEHOLDERS = {"shared/postgres/migrations/NNNN_what_it_does.sql"}
# Routing keys that begin like a package.
ROUTING_KEYS = {"delivery.completed", "delivery.failed"}

FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")


def documents() -> list[Path]:
    at_the_top = [*ROOT.glob("*.md"), ROOT / "client/README.md"]
    return sorted([*at_the_top, *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*/README.md")])


def code_in(text: str) -> list[str]:
    """The blocks and the spans in backticks."""
    return [*FENCED.findall(text), *INLINE.findall(FENCED.sub("", text))]


@cache
def names_in(file: Path) -> frozenset[str]:
    """What the module defines or imports at its top."""
    names = set()
    for node in ast.parse(file.read_text()).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                names |= {one.asname or one.name for one in imported}
    return frozenset(names)


def is_module_or_its_name(dotted: str) -> bool:
    """Follow packages and modules as far as they go; at most one name of a module may be left."""
    place, *rest = dotted.split(".")
    path = ROOT / place
    while rest and (path / rest[0]).is_dir():
        path /= rest.pop(0)
    if rest and (path / f"{rest[0]}.py").is_file():
        path = path / f"{rest.pop(0)}.py"
    else:
        path /= "__init__.py"
    return not rest or (len(rest) == 1 and path.is_file() and rest[0] in names_in(path))


@cache
def members() -> dict[str, set[str]]:
    """The methods, properties and fields of every class of the code, by the name of the class."""
    found: dict[str, set[str]] = defaultdict(set)
    for package in [*PACKAGES, "client"]:
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef):
                    found[node.name] |= set(members_of(node))
    return found


def members_of(node: ast.ClassDef) -> Iterator[str]:
    for one in ast.walk(node):
        match one:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def missing_in(text: str) -> list[str]:
    """What the text names in backticks and the code does not have."""
    missing = []
    for code in code_in(text):
        # Documents name tests by their path below tests/.
        paths = [path for path in PATH.findall(code) if path not in PLACEHOLDERS]
        missing += [path for path in paths if not ((ROOT / path).exists() or (ROOT / "tests" / path).exists())]
        dotted = [name for name in MODULE.findall(code) if name not in ROUTING_KEYS]
        missing += [name for name in dotted if not is_module_or_its_name(name)]
        if (named := MEMBER.fullmatch(code)) and named[2] not in {"md", *members().get(named[1], ())}:
            missing.append(code)
    return missing


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_names_is_in_the_code(document: Path) -> None:
    assert missing_in(document.read_text()) == []


@pytest.mark.parametrize(
    "code",
    [
        "shared/postgres/grants.sql",
        "python -m shared.migrate",
        "shared.amqp",
        "shared.amqp.publisher.Publisher",
        "consumer/commands/",
        "delivery.completed.<topic>",
        "https://example.com/docs/page",
        "Publisher.publish()",
        "README.md",
    ],
)
def test_a_name_of_the_code_and_other_text_are_not_missed(code: str) -> None:
    assert missing_in(f"See `{code}`.") == []


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("shared/header_reading.py", "shared/header_reading.py"),
        ("console/web/failures.py", "console/web/failures.py"),
        ("sh stack/install.sh now", "stack/install.sh"),
        ("python -m shared.migration", "shared.migration"),
        ("shared.amqp.publisher.Sender", "shared.amqp.publisher.Sender"),
        ("Publisher.mend()", "Publisher.mend()"),
        ("Bell.ring", "Bell.ring"),
    ],
)
def test_a_name_that_the_code_does_not_have_is_found(code: str, missing: str) -> None:
    assert missing_in(f"See `{code}`.") == [missing]
    assert missing_in(f"```sh\n{code}\n```") == ([] if "." in missing and missing[0].isupper() else [missing])
