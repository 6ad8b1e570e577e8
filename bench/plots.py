"""Plots of figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from bench.figures import Figure

DUEBELL, OTHERS, GOOD, BAD = "#2563eb", "#94a3b8", "#16a34a", "#dc2626"
BY_THE_BAR: dict[str, Any] = {"textcoords": "offset points", "va": "center"}
mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})


def plot_beside(figures: Sequence[Figure], path: Path) -> Path:
    """Plot each figure as a bar, what stood beside it as a thinner one below; one panel for each unit."""
    units = list(dict.fromkeys(figure.unit for figure in figures))
    of_unit = [[figure for figure in figures if figure.unit == unit] for unit in units]
    heights = [len(group) for group in of_unit]
    canvas = Canvas(figsize=(9, 1.0 + 0.62 * sum(heights) + 0.5 * len(units)), layout="constrained")
    panels = canvas.subplots(len(units), 1, height_ratios=heights, squeeze=False)[:, 0]
    for panel, unit, group in zip(panels, units, of_unit, strict=True):
        _bars(panel, unit, group)
    return saved(canvas, path)


def _bars(panel: Any, unit: str, figures: Sequence[Figure]) -> None:  # noqa: ANN401 - matplotlib's types are loose
    for place, figure in enumerate(reversed(figures)):
        panel.barh(place + 0.12, figure.value, height=0.42, color=DUEBELL)
        panel.annotate(_text(figure), (figure.value, place + 0.12), (4, 0), **BY_THE_BAR)
        if figure.beside:
            panel.barh(place - 0.25, figure.beside.value, height=0.26, color=OTHERS)
            place_of_text = (figure.beside.value, place - 0.25)
            text = f"{figure.beside.what}: {number(figure.beside.value)}"
            panel.annotate(text, place_of_text, (4, 0), **BY_THE_BAR, color="#475569", fontsize=8)
    panel.set_yticks(range(len(figures)), [figure.what for figure in reversed(figures)])
    panel.set_xlabel(unit)
    panel.margins(x=0.7)
    panel.set_xlim(left=0)


def _text(figure: Figure) -> str:
    value = number(figure.value)
    return f"{value}  (ratio {figure.ratio:.2f})" if figure.ratio is not None else value


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def plot_goals(figures: Sequence[Figure], path: Path) -> Path:
    """Plot how far each figure that has a goal is beyond it: 1 is the goal, to the right is better."""
    judged = [figure for figure in figures if figure.goal and figure.goal.at_most != 0]
    canvas = Canvas(figsize=(9, 1.0 + 0.3 * len(judged)), layout="constrained")
    panel = canvas.subplots()
    for place, figure in enumerate(reversed(judged)):
        panel.barh(place, _beyond(figure), height=0.6, color=GOOD if figure.met else BAD)
        panel.annotate(f"{_beyond(figure):.2f}", (_beyond(figure), place), (4, 0), **BY_THE_BAR)
    panel.axvline(1.0, color="#0f172a", linewidth=1)
    panel.set_yticks(range(len(judged)), [f"{figure.of}: {figure.what} ({figure.goal})" for figure in reversed(judged)])
    panel.set_xlabel("times the goal")
    panel.set_xlim(0, min(5.0, 1.15 * max((_beyond(figure) for figure in judged), default=1.0)))
    return saved(canvas, path)


def _beyond(figure: Figure) -> float:
    if figure.goal is None or not figure.judged:
        return 0.0
    if figure.goal.at_least:
        return figure.judged / figure.goal.at_least
    return (figure.goal.at_most or 0.0) / figure.judged


def saved(canvas: Canvas, path: Path) -> Path:
    canvas.savefig(path, dpi=110)
    return path
