"""The tables that `make compose` prints. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A step, what was seen, and how long it took."""

    step: str
    seen: str
    seconds: float
    passed: bool = True


@dataclass(frozen=True, slots=True)
class ImageRow:
    """An image that docker-compose.yml pins, and what ran under its name."""

    pinned: str
    ran: str


def report(engine: str, images: Sequence[ImageRow], rows: Sequence[Row]) -> str:
    """Return the tables in Markdown."""
    lines = [engine, "", "| image | what ran |", "| --- | --- |"]
    lines += [f"| {image.pinned} | {image.ran} |" for image in images]
    lines += ["", "| step | seen | seconds |", "| --- | --- | ---: |"]
    for row in rows:
        lines.append(f"| {row.step} | {'' if row.passed else '**FAILED**: '}{row.seen} | {row.seconds:.0f} |")
    return "\n".join(lines)
