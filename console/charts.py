"""Charts as SVG, drawn by the server: no script, no style inside. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from shared.reading.future import Part
from shared.reading.history import LatenessAt
from shared.reading.times import describe_duration

WIDTH, HEIGHT = 640, 170
LEFT, RIGHT, TOP, BOTTOM = 44, 4, 8, 22


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    part: Part


@dataclass(frozen=True, slots=True)
class Grid:
    """A horizontal line with its number."""

    y: float
    text: str


@dataclass(frozen=True, slots=True)
class BarChart:
    bars: list[Bar]
    grid: list[Grid]
    total: int
    is_about: bool


@dataclass(frozen=True, slots=True)
class LineChart:
    """Points of lines as SVG writes them. A minute without occurrences breaks a line."""

    p50: list[str]
    p99: list[str]
    grid: list[Grid]
    is_empty: bool


def draw_future(parts: Sequence[Part]) -> BarChart:
    """Draw one bar for each part of the time to come."""
    top = _round_up(max((part.jobs for part in parts), default=0) or 1)
    step = (WIDTH - LEFT - RIGHT) / max(len(parts), 1)
    bars = []
    for number, part in enumerate(parts):
        height = (HEIGHT - TOP - BOTTOM) * part.jobs / top
        if part.jobs:
            height = max(height, 1.5)
        bars.append(
            Bar(
                round(LEFT + number * step + step * 0.12, 2),
                round(HEIGHT - BOTTOM - height, 2),
                round(step * 0.76, 2),
                round(height, 2),
                part,
            )
        )
    grid = [Grid(_y(value, top), f"{value:,.0f}") for value in _ticks(top)]
    return BarChart(bars, grid, sum(part.jobs for part in parts), any(part.is_about for part in parts))


def draw_lateness(minutes: Sequence[LatenessAt]) -> LineChart:
    """Draw the median and the 99th percentile of each minute."""
    known = [one.p99.total_seconds() for one in minutes if one.p99 is not None]
    top = _round_up(max(known, default=0.0) or 0.01)
    grid = [
        Grid(_y(value, top), describe_duration(timedelta(seconds=value)) if value else "0") for value in _ticks(top)
    ]
    return LineChart(
        _lines(minutes, [one.p50 for one in minutes], top),
        _lines(minutes, [one.p99 for one in minutes], top),
        grid,
        is_empty=not known,
    )


def _lines(minutes: Sequence[LatenessAt], values: Sequence[timedelta | None], top: float) -> list[str]:
    step = (WIDTH - LEFT - RIGHT) / max(len(minutes) - 1, 1)
    lines: list[str] = []
    points: list[str] = []
    for number, value in enumerate([*values, None]):
        if value is not None:
            points.append(f"{LEFT + number * step:.1f},{_y(value.total_seconds(), top):.1f}")
        elif points:
            # A single minute is drawn as a short dash.
            x, y = points[0].split(",")
            lines.append(" ".join(points) if len(points) > 1 else f"{float(x) - 3:.1f},{y} {float(x) + 3:.1f},{y}")
            points = []
    return lines


def _y(value: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top, 1)


def _ticks(top: float) -> list[float]:
    return [0, top / 2, top]


def _round_up(value: float) -> float:
    """Return the next number of the form 1, 2 or 5 times a power of ten, at least 2 for whole numbers."""
    power = 10.0**-6
    while True:
        for digit in (1, 2, 4, 6, 8):
            if digit * power >= value * (1 - 1e-9):
                return digit * power
        power *= 10
