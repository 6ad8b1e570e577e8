"""The site of the documents: pages that live beside the code, links between them, and nothing from the network."""

import re
from pathlib import Path

import pytest
from mkdocs.exceptions import PluginError

from tests.support.services import ROOT
from tools.site.hooks import ELSEWHERE, with_links_of_the_site


@pytest.mark.parametrize(
    ("page", "markdown", "expected"),
    [
        ("index.md", "[a](docs/messages.md#states)", "[a](messages.md#states)"),
        ("client.md", "[a](../docs/messages.md)", "[a](messages.md)"),
        ("messages.md", "[a](../client/README.md)", "[a](client.md)"),
        ("how-to/node.md", "[a](../messages.md)", "[a](../messages.md)"),
        ("how-to/node.md", "see [publisher.mjs](../../examples/javascript/publisher.mjs)", "see publisher.mjs"),
        ("messages.md", "[a](https://example.com/x.md)", "[a](https://example.com/x.md)"),
        ("messages.md", "```\n[a](no/such/file.md)\n```", "```\n[a](no/such/file.md)\n```"),
    ],
)
def test_a_link_leads_to_the_page_of_the_site(page: str, markdown: str, expected: str) -> None:
    assert with_links_of_the_site(markdown, page) == expected


def test_a_link_to_a_file_that_is_not_there_ends_the_build() -> None:
    with pytest.raises(PluginError, match=r"docs/messages\.md links to docs/nowhere\.md"):
        with_links_of_the_site("[a](nowhere.md)", "messages.md")


def pages() -> list[Path]:
    beside = [ROOT / source for source in ELSEWHERE if source.endswith(".md")]
    return sorted([*(ROOT / "docs").rglob("*.md"), *beside])


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_in_a_file_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\((?!\w+:)([^)#\s]+)", text):
        assert (page.parent / link).exists(), link


def test_nothing_is_loaded_from_elsewhere() -> None:
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "font: false" in settings
    assert not re.search(r"https?://", settings)
