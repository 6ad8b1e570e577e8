"""Every benchmark runs, at a size at which its figures are worth nothing: so that none of them rots."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.catalogue import BENCHMARKS, ON_REQUEST
from bench.figures import Beside, Figure, Goal
from bench.plan import TINY
from bench.results import write_results
from bench.rig import Rig, a_rig


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with a_rig() as started:
        yield started


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name not in ON_REQUEST])
async def test_a_benchmark_finds_figures(rig: Rig, name: str) -> None:
    figures = [figure async for figure in BENCHMARKS[name].run(rig, TINY)]

    assert figures
    assert all(math.isfinite(figure.value) and figure.what and figure.unit for figure in figures)


def test_the_figures_of_a_run_are_written_as_json_and_as_plots(tmp_path: Path) -> None:
    figures = [
        Figure("twice the ceiling", 20.0, "jobs/s", Beside("ceiling", 10.0), Goal(at_least=3), of="one"),
        Figure("a few", 5.0, "ms", goal=Goal(at_most=8), of="two"),
        Figure("another", 5.0, "jobs/s", Beside("Duebell", 10.0), Goal(at_most=1), of="peers"),
    ]

    written = write_results(figures, tmp_path, whole=True)

    assert sorted(path.name for path in written) == ["figures.json", "goals.png", "one.png", "peers.png", "two.png"]
    assert all(path.stat().st_size for path in written)
    first, second, _ = json.loads((tmp_path / "figures.json").read_text())["figures"]
    assert (first["ratio"], first["met"], first["goal"]) == (2.0, False, "≥ 3")
    assert (second["ratio"], second["met"], second["goal"]) == (None, True, "≤ 8")
