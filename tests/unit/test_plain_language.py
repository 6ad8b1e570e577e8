"""The code names who acts: no sentence and no name says nobody or whoever where a process, table or user is meant.
Names of the private vocabulary that the code once had do not come back, and one name of a constant has one value.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.services import ROOT

CODE = [
    "bench", "cli", "client", "console", "consumer", "delivery", "deploy", "examples", "producer", "shared", "stack",
    "tests", "tools",
]  # fmt: skip
PLACES = [*CODE, "docs", "."]
SUFFIXES = {".py", ".sql", ".sh", ".mjs", ".yml", ".conf", ".html", ".css", ".md"}
ALSO = [
    "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "Dockerfile", "Makefile", "docker-compose.yml",
    "duebell", ".ci/run", ".ci/audit",
]  # fmt: skip
OF_OTHERS = {"node_modules", "__pycache__", ".venv"}
THIS_FILE = Path(__file__).relative_to(ROOT).as_posix()

PRONOUNS = [
    "whoever", "whomever", "nobody", "somebody", "anybody", "everybody", "anyone", "everyone", "someone",
    "ours", "theirs",
]  # fmt: skip
# A pronoun begins a word of a sentence or of a name: `somebody_waits` is found, too.
PRONOUN = re.compile(rf"(?<![a-z])(?:{'|'.join(PRONOUNS)})", re.IGNORECASE)
# Released migrations do not change, and neither do their words.
RELEASED = ("shared/postgres/migrations/0004_lifecycle.sql", "shared/postgres/migrations/0005_lighter_deliveries.sql")

# Texts that are no pronouns, by file.
ALLOWED = {
    "docs/decisions.md": ["`nobody`"],  # the Unix user
    "stack/unprivileged.py": ["`nobody`", '"nobody"'],
    "tests/stack/test_postgres.py": ['"nobody"'],
}

# With one of these words, or a possessive, a docstring begins without a verb: it goes on from the name of the function.
NO_VERBS = {
    "a", "above", "all", "also", "an", "around", "as", "at", "both", "by", "each", "every", "false", "for", "from",
    "how", "if", "in", "inside", "it", "its", "many", "most", "no", "none", "now", "of", "on", "one", "only", "some",
    "that", "the", "these", "they", "this", "those", "to", "true", "until", "what", "when", "where", "whether",
    "which", "who", "why", "with", "without",
}  # fmt: skip
WITH_SENTENCES = [
    "bench", "cli", "client", "console", "consumer", "delivery", "examples", "producer", "shared", "stack", "tools",
]  # fmt: skip

# Limits are MAX_… or MIN_… and end in their unit.
LIMITS = re.compile(r"_?(?:LONGEST|SHORTEST|MOST|LAST_LOOK|EARLY_BIRD)(?:_|$)")
# What modules and classes were once called. A module's name says what it holds.
OLD_CLASSES = {
    "Bell", "Breath", "Ground", "Lifetime", "Line", "Pulse", "Scene", "Shot", "Tallies", "Town", "Verdict", "Volley",
}  # fmt: skip
OLD_MODULES = {
    "bell", "breath", "folding", "gate", "ground", "line", "moments", "precedence", "pulse", "reckoning", "sabotage",
    "scene", "sight", "steering", "tallies", "telling", "town", "volley",
}  # fmt: skip

# In each of these groups of packages, a name of a constant has one value.
PROGRAMS = [("shared", "consumer", "producer", "delivery", "cli", "console"), ("client",), ("stack",), ("tools",)]


@cache
def files() -> tuple[str, ...]:
    below = [path for directory in PLACES[:-1] for path in (ROOT / directory).rglob("*") if path.suffix in SUFFIXES]
    names = [path.relative_to(ROOT).as_posix() for path in below if not OF_OTHERS & set(path.parts)]
    return tuple(sorted({*names, *ALSO} - {THIS_FILE}))


def python_files(*directories: str) -> Iterator[str]:
    for file in files():
        if file.endswith(".py") and (not directories or file.startswith(directories)):
            yield file


@cache
def tree_of(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text())


def pronouns_in(text: str, allowed: list[str]) -> list[str]:
    """The lines that have a pronoun, with their numbers."""
    for one in allowed:
        text = text.replace(one, "")
    return [f"{number}: {line.strip()}" for number, line in enumerate(text.splitlines(), 1) if PRONOUN.search(line)]


def constants_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names in capitals that the module assigns, with their values as source text."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.isupper():
                yield name, ast.unparse(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name.isupper():
                yield name, ast.unparse(value)


def docstrings_without_verb(tree: ast.Module) -> list[str]:
    """Return the names of functions whose docstrings do not begin with a verb. A property's may name its value."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [
        node.name
        for node in functions
        if (words := (ast.get_docstring(node) or "").split())
        and (words[0].strip("`,.:;").lower() in NO_VERBS or words[0].endswith("'s") or not words[0][0].isupper())
        and not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]


def old_names_in(tree: ast.Module) -> list[str]:
    classes = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    constants = [name for name, _ in constants_of(tree)]
    return [name for name in classes if name in OLD_CLASSES] + [name for name in constants if LIMITS.match(name)]


def several_values(constants: list[tuple[str, str]]) -> dict[str, set[str]]:
    """Public names that have more than one value."""
    values: dict[str, set[str]] = defaultdict(set)
    for name, value in constants:
        if not name.startswith("_"):
            values[name].add(value)
    return {name: given for name, given in values.items() if len(given) > 1}


@pytest.mark.parametrize("directory", PLACES)
def test_no_pronoun_stands_for_a_process_a_table_or_a_user(directory: str) -> None:
    of_directory = [file for file in files() if (Path(file).parts[0] if "/" in file else ".") == directory]
    found = {
        file: pronouns_in((ROOT / file).read_text(), ALLOWED.get(file, []))
        for file in of_directory
        if file not in RELEASED
    }
    assert {file: lines for file, lines in found.items() if lines} == {}


def test_the_docstring_of_a_function_begins_with_a_verb() -> None:
    found = {file: docstrings_without_verb(tree_of(file)) for file in python_files(*(f"{d}/" for d in WITH_SENTENCES))}
    assert {file: names for file, names in found.items() if names} == {}


def test_no_module_class_or_limit_has_a_name_of_the_old_vocabulary() -> None:
    assert [file for file in python_files() if Path(file).stem in OLD_MODULES] == []
    found = {file: old_names_in(tree_of(file)) for file in python_files()}
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize("packages", PROGRAMS, ids=lambda packages: packages[0])
def test_one_name_of_a_constant_has_one_value(packages: tuple[str, ...]) -> None:
    directories = tuple(f"{package}/" for package in packages)
    constants = [constant for file in python_files(*directories) for constant in constants_of(tree_of(file))]
    assert len(constants) > 10
    assert several_values(constants) == {}


@pytest.mark.parametrize(
    "line",
    [
        "# whoever comes first",
        "def test_nobody_waits() -> None:",
        '"""Nobody may."""',
        "NOBODY = None",
        "the row is not ours",
        "somebodys_row",
    ],
)
def test_a_pronoun_is_found_in_sentences_and_in_names(line: str) -> None:
    assert pronouns_in(f"x = 1\n{line}\n", []) == [f"2: {line}"]


def test_an_allowed_text_and_part_of_another_word_are_no_pronouns() -> None:
    assert pronouns_in('run as "nobody"\nbusybody hours\n', ['"nobody"']) == []


def test_a_docstring_that_goes_on_from_its_name_is_found() -> None:
    tree = ast.parse(
        'def url():\n    """The operator\'s."""\ndef wait():\n    """Until it ends."""\n'
        'def stop():\n    """Stop it."""\n@property\ndef port():\n    """The port."""\n'
    )
    assert docstrings_without_verb(tree) == ["url", "wait"]


def test_old_names_and_second_values_are_found() -> None:
    tree = ast.parse("LONGEST_WAIT = 5\nMAX_WAIT: float = 5.0\nclass Bell: ...\nclass Doorbell: ...\n")
    assert old_names_in(tree) == ["Bell", "LONGEST_WAIT"]
    assert several_values([("WAIT", "1"), ("WAIT", "2"), ("LOOK", "1"), ("LOOK", "1"), ("_X", "1"), ("_X", "2")]) == {
        "WAIT": {"1", "2"}
    }
