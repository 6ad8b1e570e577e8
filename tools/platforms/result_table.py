"""The table at the end of `make platforms`. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

VERSIONS = ("RabbitMQ", "Python", "Postgres", "PgBouncer")
OUTCOMES = ("make demo", "make test", "behind PgBouncer")

_COUNTS = re.compile(r"^=+ (?P<counts>\d+ [a-z]+(?:, \d+ [a-z]+)*) in [\d.]+s", re.MULTILINE)
_TOLD = ("failed", "errors", "error", "passed", "skipped")


@dataclass(slots=True)
class Row:
    """How a release did."""

    title: str
    versions: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    passed: bool = True
    seconds: float = 0.0


def outcome(status: int, log: str, seconds: float) -> str:
    """Return how a step ended: the counts of pytest where the log has some."""
    text = "ok" if status == 0 else f"failed ({status})"
    if found := _COUNTS.findall(log):
        by_name = {name: number for number, name in (part.split() for part in found[-1].split(", "))}
        text = ", ".join(f"{by_name[name]} {name}" for name in _TOLD if name in by_name)
        if status != 0 and not {"failed", "error", "errors"} & set(by_name):
            text += f", but ended with {status}"
    return f"{text}; {_minutes(seconds)}"


def upstream_version(debian: str) -> str:
    """Return the version of a Debian package as its authors call it: `4.0.5` of `1:4.0.5-7+b1`."""
    return re.sub(r"^\d+:", "", debian).rpartition("-")[0].partition("+")[0].partition("~")[0] or debian


def table(rows: Sequence[Row]) -> str:
    """Return the rows in Markdown."""
    header = ["platform", *VERSIONS, *OUTCOMES, "in all"]
    lines = [header, ["---"] * len(header)]
    for row in rows:
        told = [*_cells(VERSIONS, row.versions), *_cells(OUTCOMES, row.outcomes)]
        lines.append([row.title, *told, _minutes(row.seconds)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(names: Sequence[str], values: Mapping[str, str]) -> list[str]:
    return [values.get(name, "-") for name in names]


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"
