"""The corpus as it is committed: one file per family, one case per line, readable. `python -m tests.hostile` writes it
anew after a change of a family; a test compares.

A body is text where it is UTF-8, base64 where it is not, and a list where something in it is repeated very often: of
pieces, and of pairs of a piece and how many times.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.hostile.case import Case
from tests.hostile.families import (
    bombs,
    bulks,
    framing,
    grammar,
    headers,
    ids,
    kinds,
    message_properties,
    pause_and_trigger,
    queries,
    rules,
    times,
    urls,
)

DIRECTORY = Path(__file__).parent / "corpus"
FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    "framing": framing.cases,
    "grammar": grammar.cases,
    "kinds": kinds.cases,
    "ids": ids.cases,
    "times": times.cases,
    "rules": rules.cases,
    "bombs": bombs.cases,
    "urls": urls.cases,
    "headers": headers.cases,
    "pause_and_trigger": pause_and_trigger.cases,
    "queries": queries.cases,
    "bulks": bulks.cases,
    "message_properties": message_properties.cases,
}
# Something of up to 16 bytes, a hundred times or more in a row.
REPEATED = re.compile(rb"(.{1,16}?)\1{99,}", re.DOTALL)


def generated() -> dict[str, str]:
    """Return the text of each corpus file, by family."""
    return {family: "".join(f"{to_line(case)}\n" for case in cases()) for family, cases in FAMILIES.items()}


def committed() -> dict[str, str]:
    return {family: (DIRECTORY / f"{family}.jsonl").read_text() for family in FAMILIES}


def load() -> list[Case]:
    """Return every case of the committed files."""
    return [from_line(line) for text in committed().values() for line in text.splitlines()]


def to_line(case: Case) -> str:
    return json.dumps(
        {
            "name": case.name,
            "ends": "stored" if case.field is None else f"{'parked' if case.is_parked else 'refused'}: {case.field}",
            **({"key": case.key} if case.key != "schedule.request" else {}),
            **({"type": case.type} if case.type is not None else {}),
            **({"properties": _packed(case.properties)} if case.properties is not None else {}),
            "body": _packed(case.body),
        }
    )


def from_line(line: str) -> Case:
    fields: dict[str, Any] = json.loads(line)
    end, _, field = fields.pop("ends").partition(": ")
    given = fields.pop("properties", None)
    return Case(
        **{**fields, "body": _unpacked(fields["body"])},
        field=field or None,
        properties=None if given is None else _unpacked(given),
        is_parked=end != "refused",
    )


def _packed(body: bytes) -> Any:
    pieces: list[Any] = []
    end = 0
    for found in REPEATED.finditer(body) if len(body) > 1000 else ():
        if found.start() > end:
            pieces.append(_piece(body[end : found.start()]))
        pieces.append([_piece(found[1]), len(found[0]) // len(found[1])])
        end = found.end()
    if not pieces:
        return _piece(body)
    return [*pieces, *([_piece(body[end:])] if end < len(body) else [])]


def _unpacked(packed: Any) -> bytes:
    if not isinstance(packed, list):
        return _bytes_of(packed)
    return b"".join(_bytes_of(piece[0]) * piece[1] if isinstance(piece, list) else _bytes_of(piece) for piece in packed)


def _piece(piece: bytes) -> Any:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(piece).decode()}


def _bytes_of(piece: Any) -> bytes:
    return base64.b64decode(piece["base64"]) if isinstance(piece, dict) else str(piece).encode()
