"""Plots of figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from bench.figures import Figure

OURS, THEIRS, GOOD, BAD = "#2563eb", "#94a3b8", "#16a34a", "#dc2626"
BY_THE_BAR: dict[str, Any] = {"textcoords": "offset points", "va": "center"}
mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})


def plot_beside(figures: Sequence[Figure], path: Path) -> Path:
    """Each figure as a bar, what stood beside it as a thinner one below; one panel for each unit."""
    units = list(dict.fromkeys(figure.unit for figure in figures))
    of_unit = [[figure for figure in figures if figure.unit == unit] for unit in units]
    heights = [len(group) for group in of_unit]
    canvas = Canvas(figsize=(9, 1.0 + 0.62 * sum(heights) + 0.5 * len(units)), layout="constrained")
    panels = canvas.subplots(len(units), 1, height_ratios=heights, squeeze=False)[:, 0]
    for panel, unit, group in zip(panels, units, of_unit, strict=True):
        _bars(panel, unit, group)
    return _saved(canvas, path)


def _bars(panel: Any, unit: str, figures: Sequence[Figure]) -> None:  # noqa: ANN401 - matplotlib's types are loose
    for place, figure in enumerate(reversed(figures)):
        panel.barh(place + 0.12, figure.value, height=0.42, color=OURS)
        panel.annotate(_text(figure), (figure.value, place + 0.12), (4, 0), **BY_THE_BAR)
        if figure.beside:
            panel.barh(place - 0.25, figure.beside.value, height=0.26, color=THEIRS)
            place_of_text = (figure.beside.value, place - 0.25)
            text = f"{figure.beside.what}: {figure.beside.value:,.4g}"
            panel.annotate(text, place_of_text, (4, 0), **BY_THE_BAR, color="#475569", fontsize=8)
    panel.set_yticks(range(len(figures)), [figure.what for figure in reversed(figures)])
    panel.set_xlabel(unit)
    panel.margins(x=0.35)
    panel.set_xlim(left=0)


def _text(figure: Figure) -> str:
    value = f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.3g}"
    return f"{value}  (ratio {figure.ratio:.2f})" if figure.ratio is not None else value


def plot_peers(figures: Sequence[Figure], path: Path) -> Path:
    """Rate, and CPU time of the process: ours among the others'."""
    ordered = sorted(figures, key=lambda figure: figure.value)
    canvas = Canvas(figsize=(9, 0.9 + 0.42 * len(ordered)), layout="constrained")
    rates, costs = canvas.subplots(1, 2, sharey=True)
    for place, figure in enumerate(ordered):
        colour = THEIRS if figure.beside else OURS
        spent = figure.cost.cpu_ms_per_1000 / 1000 if figure.cost else 0.0
        rates.barh(place, figure.value, height=0.6, color=colour)
        rates.annotate(f"{figure.value:,.0f}", (figure.value, place), (4, 0), **BY_THE_BAR)
        costs.barh(place, spent, height=0.6, color=colour)
        costs.annotate(f"{spent:.2f}", (spent, place), (4, 0), **BY_THE_BAR)
    rates.set_yticks(range(len(ordered)), [figure.what for figure in ordered])
    rates.set_xlabel("due jobs published and confirmed a second, one process")
    costs.set_xlabel("CPU seconds of that process per 1,000 jobs")
    for panel in (rates, costs):
        panel.margins(x=0.18)
    return _saved(canvas, path)


def plot_goals(figures: Sequence[Figure], path: Path) -> Path:
    """How far each figure that has a goal is beyond it: 1 is the goal, to the right is better."""
    judged = [figure for figure in figures if figure.goal]
    canvas = Canvas(figsize=(9, 1.0 + 0.3 * len(judged)), layout="constrained")
    panel = canvas.subplots()
    for place, figure in enumerate(reversed(judged)):
        panel.barh(place, _beyond(figure), height=0.6, color=GOOD if figure.met else BAD)
        panel.annotate(f"{_beyond(figure):.2f}", (_beyond(figure), place), (4, 0), **BY_THE_BAR)
    panel.axvline(1.0, color="#0f172a", linewidth=1)
    panel.set_yticks(range(len(judged)), [f"{figure.of}: {figure.what} ({figure.goal})" for figure in reversed(judged)])
    panel.set_xlabel("times the goal")
    panel.set_xlim(0, min(5.0, 1.15 * max((_beyond(figure) for figure in judged), default=1.0)))
    return _saved(canvas, path)


def _beyond(figure: Figure) -> float:
    judged = figure.ratio if figure.beside else figure.value
    if figure.goal is None or not judged:
        return 0.0
    return judged / figure.goal.at_least if figure.goal.at_least else (figure.goal.at_most or 0.0) / judged


def _saved(canvas: Canvas, path: Path) -> Path:
    canvas.savefig(path, dpi=110)
    return path
