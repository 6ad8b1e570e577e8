"""CONTRIBUTING.md names files, directories and make targets that are there."""

import re

import pytest

from tests.support.services import ROOT

PAGES = ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md"]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
# A command writes them, or a reader does.
NOT_IN_THE_TREE = {"shared/postgres/migrations/NNNN_what_it_does.sql", "sbom.cdx.json", ".env"}


def names_in(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)))


def test_every_file_and_directory_that_is_named_is_there() -> None:
    paths = {name for name in names_in(GUIDE) if re.fullmatch(r"[\w./-]*(/|\.(py|sql|md|yml|yaml|toml|lock))", name)}
    assert len(paths) > 50
    assert sorted(name for name in paths - NOT_IN_THE_TREE if not any(ROOT.glob(name.rstrip("/")))) == []


def test_every_make_target_that_is_named_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name.split()[1] for name in names_in(GUIDE) if name.startswith("make ")}
    assert len(named) > 8
    assert named <= targets


def test_every_directory_of_tests_is_explained() -> None:
    there = {f"tests/{path.name}/" for path in (ROOT / "tests").iterdir() if (path / "__init__.py").exists()}
    assert there <= names_in(GUIDE)


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", (ROOT / page).read_text())
    local = [link for link in links if "://" not in link and not link.startswith(("mailto:", ".."))]
    assert [link for link in local if not (ROOT / link).exists()] == []
