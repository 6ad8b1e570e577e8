"""No block of the documents goes unrun in silence."""

import ast
from pathlib import Path

import pytest

from tests.documents.blocks import Block, blocks_of, pages
from tests.documents.coverage import LINES_RUN_ELSEWHERE, NOT_RUN, RUN_ELSEWHERE, RUN_HERE
from tests.support.services import ROOT

TESTS = ROOT / "tests"
EVERY_BLOCK = [block for page in pages() for block in blocks_of(page)]


def is_run(block: Block) -> bool:
    if (block.page, block.language) in RUN_ELSEWHERE:
        return True
    if block.page in RUN_HERE:
        return block.language in {"python", "sh", "text"}
    return block.language == "text"  # a picture, or what a block that is run elsewhere prints


def test_a_block_that_is_not_run_is_listed_and_says_so() -> None:
    not_run = [block for block in EVERY_BLOCK if not is_run(block)]
    listed = {(block.page, start) for block in not_run for start in _starts(block)}
    assert listed == NOT_RUN
    assert [block.first_line for block in not_run if "Not run" not in block.before] == []


def _starts(block: Block) -> list[str]:
    return [start for page, start in NOT_RUN if page == block.page and block.first_line.startswith(start)] or [
        block.first_line
    ]


def test_every_block_has_a_language() -> None:
    assert [(block.page, block.first_line) for block in EVERY_BLOCK if not block.language] == []
    fences = sum(_fences(ROOT / page) for page in pages())
    assert fences == 2 * len(EVERY_BLOCK) > 100


def _fences(page: Path) -> int:
    return sum(line.lstrip().startswith("```") for line in page.read_text().splitlines())


def test_every_file_that_a_page_has_the_reader_save_is_used_by_its_commands() -> None:
    for page in RUN_HERE:
        commands = "\n".join(block.text for block in blocks_of(page) if block.language == "sh")
        for block in blocks_of(page):
            if block.file and "/" not in block.file:
                assert block.file.removesuffix(".py") in commands, f"{page}: {block.file}"


def test_a_page_that_is_run_here_is_a_page_of_the_site() -> None:
    assert set(RUN_HERE) <= set(pages())
    assert {page for page, _ in RUN_ELSEWHERE} <= set(pages())


@pytest.mark.parametrize("test", sorted({*RUN_ELSEWHERE.values(), *LINES_RUN_ELSEWHERE.values()}))
def test_a_test_that_runs_blocks_elsewhere_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((TESTS / file).read_text())
    assert name in {getattr(node, "name", None) for node in ast.walk(tree)}


@pytest.mark.parametrize("line", LINES_RUN_ELSEWHERE)
def test_a_line_that_is_left_out_is_on_a_page(line: str) -> None:
    assert any(line in [each.strip() for each in block.text.splitlines()] for block in EVERY_BLOCK)
