"""The figures of a run as JSON, with what they were measured on, and as plots."""

import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from bench.figures import Figure
from bench.peer_plot import plot_peers
from bench.plots import plot_beside, plot_goals
from bench.rig import POSTGRES


def write_results(figures: Sequence[Figure], directory: Path, *, whole: bool) -> list[Path]:
    """Write the figures. A run of some benchmarks leaves the files of the others as they are."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, group in groupby(figures, key=lambda figure: figure.of):
        plot = plot_peers if name == "peers" else plot_beside
        written.append(plot(list(group), directory / f"{name}.png"))
    if whole:
        written += [_write_json(figures, directory / "figures.json"), plot_goals(figures, directory / "goals.png")]
    else:
        written += [_write_json(list(g), directory / f"{n}.json") for n, g in groupby(figures, key=lambda f: f.of)]
    return written


def _write_json(figures: Sequence[Figure], path: Path) -> Path:
    content = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "cores": psutil.cpu_count(),
            "memory_gb": round(psutil.virtual_memory().total / 2**30),
            "python": platform.python_version(),
        },
        "postgres": {"fsync": "on", "synchronous_commit": "on", **POSTGRES},
        "figures": [figure.as_json() for figure in figures],
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return path
