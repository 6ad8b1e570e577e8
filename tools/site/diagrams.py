"""Draws the documents' diagrams as SVG while the site is built, so that pages need no script and no network.

The source is a small part of mermaid's language, which GitHub draws by itself: participants, messages, notes and groups
of a sequenceDiagram; states and moves of a stateDiagram-v2. Where a state stands is said in a comment that mermaid
skips: `%% at pending 0 1` is column 0, row 1.
"""

import re
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from textwrap import wrap
from typing import Any

CHARACTER = 6.7  # the width of one, in the style sheet's font
LINE = 16
MAX_LINE_CHARACTERS = 26
ROW = 34
PADDING = 12
MIN_GAP = 100
BOX = 34
STATE = (118, 38)
CELL = (300, 130)

_PARTICIPANT = re.compile(r"participant (?P<key>\w+)(?: as (?P<label>.+))?")
_MESSAGE = re.compile(r"(?P<source>\w+)(?P<arrow>-->>|->>|-x|--x)(?P<target>\w+): (?P<text>.+)")
_NOTE = re.compile(r"Note over (?P<keys>\w+(?:,\w+)?): (?P<text>.+)")
_GROUP = re.compile(r"(?P<kind>loop|alt|else|opt)(?: (?P<text>.+))?")
_PLACE = re.compile(r"%% at (?P<state>\w+) (?P<column>[\d.]+) (?P<row>[\d.]+)")
_MOVE = re.compile(r"(?P<source>\w+|\[\*\]) --> (?P<target>\w+)(?:: (?P<text>.+))?")


class BadDiagram(Exception):
    """A line of a diagram that this module cannot draw: the build stops there."""


def draw(source: str, *_: Any, **__: Any) -> str:  # noqa: ANN401 - superfences passes more than is needed here
    """Return the diagram as an element for the page. superfences calls this for a block of the language mermaid."""
    kind, *lines = [line.strip() for line in source.splitlines() if line.strip()]
    drawings = {"sequenceDiagram": _sequence, "stateDiagram-v2": _states}
    if kind not in drawings:
        raise BadDiagram(f"{kind!r}: only {' and '.join(drawings)} are drawn")
    return f'<div class="diagram" data-search-exclude>{drawings[kind](lines)}</div>'


def moves(source: str) -> set[tuple[str, str]]:
    """Return the moves of a stateDiagram-v2, for a test that compares them with the code's."""
    found = (_MOVE.fullmatch(line.strip()) for line in source.splitlines())
    return {(move["source"], move["target"]) for move in found if move}


def _split(text: str, width: float = 0.0) -> list[str]:
    """Split a text into lines that fit the width. Without a width, the text makes its own room."""
    return wrap(text, max(MAX_LINE_CHARACTERS, int(width / CHARACTER) - 2)) or [""]


def _width(text: str) -> float:
    return max(len(line) for line in _split(text)) * CHARACTER


def _svg(width: float, height: float, parts: list[str]) -> str:
    arrow = (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto-start-reverse"><path d="M0 0 8 4 0 8z"/></marker></defs>'
    )
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>{arrow}{"".join(parts)}</svg>'


def _text(x: float, y: float, text: str, kind: str = "", *, width: float = 0.0) -> str:
    lines = _split(text, width)
    first = y - (len(lines) - 1) * LINE
    spans = "".join(
        f'<tspan x="{x:.0f}" y="{first + n * LINE:.0f}">{escape(line)}</tspan>' for n, line in enumerate(lines)
    )
    return f'<text class="{kind}">{spans}</text>'


def _box(left: float, top: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}" rx="4"/>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}"/>'


# Sequences


@dataclass(slots=True)
class _Open:
    """A group whose `end` has not come yet."""

    top: float
    depth: int


def _sequence(lines: list[str]) -> str:
    labels = {found["key"]: found["label"] or found["key"] for line in lines if (found := _PARTICIPANT.fullmatch(line))}
    steps = [line for line in lines if not _PARTICIPANT.fullmatch(line)]
    x = _columns(labels, steps)
    right = max(x.values()) + max(_width(labels[key]) for key in labels) / 2 + 2 * PADDING
    parts: list[str] = []
    y, number, open_groups = float(BOX + ROW), 0, list[_Open]()
    for step in steps:
        if message := _MESSAGE.fullmatch(step):
            number += 1
            distance = abs(x[message["source"]] - x[message["target"]])
            y += (len(_split(f"{number}. {message['text']}", distance)) - 1) * LINE
            parts += _message(message, x, y, number)
            y += ROW
        elif note := _NOTE.fullmatch(step):
            keys = note["keys"].split(",")
            room = x[keys[-1]] - x[keys[0]] + 4 * PADDING
            note_lines = _split(note["text"], room)
            half = max(room, max(map(len, note_lines)) * CHARACTER + 2 * PADDING) / 2
            middle = min(max((x[keys[0]] + x[keys[-1]]) / 2, half + 2), right - half - 2)
            height = len(note_lines) * LINE + 10
            parts += [
                _box(middle - half, y - 18, 2 * half, height, "note"),
                _text(middle, y - 27 + height, note["text"], "middle", width=room),
            ]
            y += height + 12
        elif step == "end":
            group = open_groups.pop()
            inset = 6 * group.depth
            parts.insert(0, _box(4 + inset, group.top, right - 8 - 2 * inset, y - group.top - 14, "group"))
            y += 8
        elif group_line := _GROUP.fullmatch(step):
            inset = 6 * len(open_groups)
            if group_line["kind"] == "else":
                inset -= 6
                parts.append(_line(4 + inset, y - 16, right - 4 - inset, y - 16, "divide"))
            else:
                open_groups.append(_Open(y - 20, len(open_groups)))
            words = " ".join(word for word in (group_line["kind"], group_line["text"]) if word)
            parts.append(_text(12 + inset, y - 2, words, "kind", width=right))
            y += ROW
        else:
            raise BadDiagram(step)
    for key, label in labels.items():
        half = _width(label) / 2 + PADDING
        parts.insert(0, _line(x[key], BOX, x[key], y, "life"))
        parts.append(_box(x[key] - half, 1, 2 * half, BOX - 2, "party"))
        parts.append(_text(x[key], BOX / 2 + 5, label, "middle strong"))
    return _svg(right, y + 4, parts)


def _message(message: re.Match[str], x: dict[str, float], y: float, number: int) -> list[str]:
    source, target = x[message["source"]], x[message["target"]]
    kind = "reply" if message["arrow"].startswith("--") else "call"
    text, width = f"{number}. {message['text']}", abs(target - source)
    words = _text((source + target) / 2, y - 8, text, "middle", width=width)
    if message["arrow"].endswith("x"):  # does not arrive
        middle = source + (target - source) * 0.55
        cross = f'<path class="cross" d="M{middle - 6:.0f} {y - 6:.0f}l12 12m0 -12l-12 12"/>'
        return [_line(source, y, middle, y, kind), cross, words]
    return [_line(source, y, target, y, f"{kind} arrow"), words]


def _columns(labels: dict[str, str], steps: list[str]) -> dict[str, float]:
    """Return where each participant's line is: as far from the one before as the texts between them need."""
    keys = list(labels)
    gaps = [max(MIN_GAP, (_width(labels[a]) + _width(labels[b])) / 2 + 3 * PADDING) for a, b in pairwise(keys)]
    spans = []
    for step in steps:
        if message := _MESSAGE.fullmatch(step):
            places = sorted((keys.index(message["source"]), keys.index(message["target"])))
            spans.append((places[1] - places[0], places, _width(f"10. {message['text']}") + PADDING))
    for _, (first, last), needed in sorted(spans, key=lambda span: span[0]):
        missing = needed - sum(gaps[first:last])
        for place in range(first, last):
            gaps[place] += max(0.0, missing / (last - first))
    x = _width(labels[keys[0]]) / 2 + 2 * PADDING
    columns = {keys[0]: x}
    for key, gap in zip(keys[1:], gaps, strict=True):
        x += gap
        columns[key] = x
    return columns


# States


def _states(lines: list[str]) -> str:
    places = {
        found["state"]: (float(found["column"]), float(found["row"]))
        for line in lines
        if (found := _PLACE.fullmatch(line))
    }
    every = [found for line in lines if (found := _MOVE.fullmatch(line))]
    unread = [line for line in lines if not (_PLACE.fullmatch(line) or _MOVE.fullmatch(line))]
    if unread:
        raise BadDiagram(unread[0])
    left, top = 90 + STATE[0] / 2, 62 + STATE[1] / 2
    centres = {state: (left + c * CELL[0], top + r * CELL[1]) for state, (c, r) in places.items()}
    pairs = {(move["source"], move["target"]) for move in every}
    parts: list[str] = []
    for move in every:
        source, target, text = move["source"], move["target"], move["text"] or ""
        if source == "[*]":
            x, y = centres[target]
            start = x - STATE[0] / 2 - 70
            parts += [f'<circle class="start" cx="{start:.0f}" cy="{y:.0f}" r="6"/>']
            parts += [_line(start + 6, y, x - STATE[0] / 2, y, "call arrow"), _text(start + 34, y - 8, text, "middle")]
        elif source == target:
            x, y = centres[source]
            # Below its state, if arrows from a state above come in on the other side.
            is_below = any(column == x and row < y for column, row in centres.values())
            side = 1 if is_below else -1
            edge = y + side * STATE[1] / 2
            loop = f"M{x - 20:.0f} {edge:.0f}c-6 {34 * side} 46 {34 * side} 40 {2 * side}"
            label_y = edge + (44 if is_below else -30)
            parts += [f'<path class="call arrow" d="{loop}"/>', _text(x, label_y, text, "middle")]
        else:
            parts += _move(centres[source], centres[target], text, is_one_of_two=(target, source) in pairs)
    for state, (x, y) in centres.items():
        ends = not any(source == state for source, _ in pairs)
        parts.append(_box(x - STATE[0] / 2, y - STATE[1] / 2, *STATE, "party end" if ends else "party"))
        parts.append(_text(x, y + 5, state, "middle strong"))
    width = max(x for x, _ in centres.values()) + STATE[0] / 2 + 8
    return _svg(width, max(y for _, y in centres.values()) + STATE[1] / 2 + 56, parts)


def _move(source: tuple[float, float], target: tuple[float, float], text: str, *, is_one_of_two: bool) -> list[str]:
    """Draw a straight arrow from box to box; two in opposite directions lie beside each other."""
    (x1, y1), (x2, y2) = source, target
    dx, dy = x2 - x1, y2 - y1
    scale = min(STATE[0] / 2 / abs(dx) if dx else 9.0, STATE[1] / 2 / abs(dy) if dy else 9.0)
    length = (dx * dx + dy * dy) ** 0.5
    aside = 12 if is_one_of_two else 0
    ox, oy = -dy / length * aside, dx / length * aside
    start, end = (x1 + dx * scale + ox, y1 + dy * scale + oy), (x2 - dx * scale + ox, y2 - dy * scale + oy)
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    if dy == 0:
        label = _text(middle[0], middle[1] + (20 if oy > 0 else -8), text, "middle")
    elif dx == 0:
        label = _text(middle[0] + (10 if ox >= 0 else -10), middle[1] + 5, text, "" if ox >= 0 else "to-left")
    else:
        label = _text(middle[0] + 14, middle[1] + 2, text)
    return [_line(*start, *end, "call arrow"), label]
