"""The plot of Duebell among its peers: a panel for each rate, and one for lateness, where less is better."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from bench.figures import Figure
from bench.plots import BY_THE_BAR, DUEBELL, OTHERS, number, saved

DUEBELL_LIGHT, OTHERS_LIGHT = "#93c5fd", "#cbd5e1"
LEFT_OUT = "p50"


def plot_peers(figures: Sequence[Figure], path: Path) -> Path:
    """Plot the figures, whose names are `peer: column`. That of Duebell is the one that nothing stands beside."""
    shown = [figure for figure in figures if not figure.what.endswith(LEFT_OUT)]
    columns = list(dict.fromkeys(_column(figure) for figure in shown if figure.unit == "jobs/s"))
    peers = _in_order(shown)
    canvas = Canvas(figsize=(1.5 + 3 * (len(columns) + 1), 1.5 + 0.5 * len(peers)), layout="constrained")
    panels = canvas.subplots(1, len(columns) + 1, sharey=True, squeeze=False)[0]
    for panel, column in zip(panels, columns, strict=False):
        _rates(panel, peers, [figure for figure in shown if _column(figure) == column])
        panel.set_title(column.replace(", ", ",\n"), fontsize=9)
        panel.set_xlabel("jobs a second")
    _lateness(panels[-1], peers, [figure for figure in shown if figure.unit == "ms"])
    panels[0].set_yticks(range(len(peers)), peers)
    return saved(canvas, path)


def _column(figure: Figure) -> str:
    return figure.what.partition(": ")[2]


def _peer(figure: Figure) -> str:
    return figure.what.partition(": ")[0]


def _in_order(figures: Sequence[Figure]) -> list[str]:
    """Sort from the slowest, at the bottom, to the fastest, by the first rate there is."""
    first = [figure for figure in figures if _column(figure) == _column(figures[0])]
    return [_peer(figure) for figure in sorted(first, key=lambda figure: figure.value)]


def _rates(panel: Any, peers: Sequence[str], figures: Sequence[Figure]) -> None:  # noqa: ANN401 - matplotlib's types
    for figure in figures:
        place = peers.index(_peer(figure))
        panel.barh(place, figure.value, height=0.6, color=OTHERS if figure.beside else DUEBELL)
        text = f"{number(figure.value)}  ({figure.note})" if figure.note else number(figure.value)
        panel.annotate(text, (figure.value, place), (4, 0), **BY_THE_BAR)
    panel.set_xlim(0, 1.7 * max(figure.value for figure in figures))
    panel.xaxis.set_major_locator(MaxNLocator(4))


def _lateness(panel: Any, peers: Sequence[str], figures: Sequence[Figure]) -> None:  # noqa: ANN401
    """Draw a bar for each situation: the first one light, above."""
    situations = list(dict.fromkeys(_column(figure) for figure in figures))
    for figure in figures:
        which = situations.index(_column(figure))
        place = peers.index(_peer(figure)) + (0.17 if which == 0 else -0.17)
        light, full = (OTHERS_LIGHT, OTHERS) if figure.beside else (DUEBELL_LIGHT, DUEBELL)
        panel.barh(place, figure.value, height=0.32, color=light if which == 0 else full)
        text = f"{'> ' if figure.note else ''}{number(figure.value)}"
        panel.annotate(text, (figure.value, place), (4, 0), **BY_THE_BAR, fontsize=8)
    panel.set_xscale("log")
    panel.set_xlim(1, 30 * max(1.0, *(figure.value for figure in figures)))
    panel.set_title("late, p99:\nidle (light), among a million (dark)", fontsize=9)
    panel.set_xlabel("milliseconds, log scale; less is better")
