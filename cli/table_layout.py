"""Decides how a table fits a terminal: which columns it has, how wide they are, and where texts are wrapped. An id or
an instant is never broken. Pure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells

GAP = 2  # between two columns
_PIECE = re.compile(r"[^\s;,/]*[;,/]+|[^\s;,/]+|\s+")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the name of its value in a row. Where there is no room, columns of the highest rank go
    first, and those of rank 0 stay. A column with `wraps` is prose: it may be made as narrow as that.
    """

    name: str
    rank: int = 0
    wraps: int = 0
    heading: str | None = None

    @property
    def title(self) -> str:
        return self.name.replace("_", " ") if self.heading is None else self.heading


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns that are shown, by their index, and how wide each is."""

    shown: tuple[int, ...]
    widths: tuple[int, ...]


def fit(columns: Sequence[Column], titles: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Layout | None:
    """Return the best layout in `width` cells, or None if even the columns of rank 0 have no room side by side."""
    texts = [[row[index] for row in rows] for index in range(len(columns))]
    cells = [max((cell_len(line) for text in of_column for line in text.splitlines()), default=0)
             for of_column in texts]  # fmt: skip
    natural = [max(cell_len(title), width_of_cells) for title, width_of_cells in zip(titles, cells, strict=True)]
    smallest = [
        max(_longest_word(title), min(width_of_cells, column.wraps) if column.wraps else width_of_cells)
        for column, title, width_of_cells in zip(columns, titles, cells, strict=True)
    ]
    # Columns without a value go before others, whatever their rank.
    is_empty = [all(text in {"", "-"} for text in of_column) for of_column in texts]
    shown = list(range(len(columns)))
    while _total([smallest[index] for index in shown]) > width:
        droppable = [index for index in shown if columns[index].rank > 0]
        if not droppable:
            return None
        shown.remove(max(droppable, key=lambda index: (is_empty[index], columns[index].rank, index)))
    widths = {index: smallest[index] for index in shown}
    spare = width - _total(list(widths.values()))
    growing = sorted((index for index in shown if widths[index] < natural[index]), key=lambda index: natural[index])
    for number, index in enumerate(growing):
        more = min(natural[index] - widths[index], spare // (len(growing) - number))
        widths[index] += more
        spare -= more
    return Layout(tuple(shown), tuple(widths[index] for index in shown))


def wrap(text: str, width: int) -> str:
    """Break lines that are longer than `width` behind a space, comma, semicolon or slash. A longer piece is cut."""
    return "\n".join(line for given in text.splitlines() for line in _wrapped(given, width))


def printable(text: str) -> str:
    """Replace control characters by their escapes: a text from a message must not steer the terminal."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def _wrapped(line: str, width: int) -> list[str]:
    if cell_len(line) <= width:
        return [line]
    lines, current = [], ""
    for piece in _PIECE.findall(line):
        if cell_len(current) + cell_len(piece.rstrip()) <= width:
            current += piece
            continue
        if current.strip():
            lines.append(current.rstrip())
        *full, current = chop_cells(piece.lstrip(), width) or [""]
        lines += full
    return [*lines, current.rstrip()] if current.strip() else lines


def _longest_word(title: str) -> int:
    return max((cell_len(piece) for piece in title.split()), default=0)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)
