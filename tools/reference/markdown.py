"""Pieces of Markdown that the reference pages are made of."""

from collections.abc import Iterable, Sequence

NOTICE = "<!-- Written by `make reference` from {source}. Do not edit. -->"


def page(title: str, source: str, *parts: str) -> str:
    return "\n\n".join([NOTICE.format(source=source), f"# {title}", *parts]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell(text) for text in line) + " |" for line in lines)


def cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def code(text: str) -> str:
    return f"`{text}`"
