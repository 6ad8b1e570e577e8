"""The fenced blocks of README.md and of the documents, page by page, in the order of the site."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.services import ROOT
from tools.site.hooks import ELSEWHERE

_PAGE = re.compile(r"^ +- (?:.+: )?(?P<page>\S+\.md)$", re.MULTILINE)
_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (?P<name>[\w./]+\.py)\n")
_SOURCES = {page: source for source, page in ELSEWHERE.items()}


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    language: str
    text: str
    before: str  # the paragraph before it

    @property
    def first_line(self) -> str:
        return self.text.partition("\n")[0].strip()

    @property
    def file(self) -> str | None:
        """The file as which the reader saves it, if its first line says one."""
        named = _FILE.match(self.text) if self.language == "python" else None
        return named["name"] if named else None


def pages() -> list[str]:
    """Every page of the site as a path in the repository, in reading order."""
    listed = _PAGE.findall((ROOT / "mkdocs.yml").read_text())
    return [_SOURCES.get(page, f"docs/{page}") for page in listed]


def blocks_of(page: str) -> list[Block]:
    return list(_blocks(page, (ROOT / page).read_text()))


def _blocks(page: str, text: str) -> Iterator[Block]:
    for fence in _FENCE.finditer(text):
        before = text[: fence.start()].rstrip().rpartition("\n\n")[2]
        yield Block(page, fence["language"], fence["text"], before)
