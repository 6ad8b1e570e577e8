"""Every benchmark runs, at a size at which its figures are worth nothing: so that none of them rots."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.catalogue import BENCHMARKS, ON_REQUEST
from bench.figures import Beside, Figure, Goal
from bench.filling import add_later
from bench.plan import TINY
from bench.results import write_results
from bench.rig import Rig, a_rig

pytestmark = pytest.mark.xdist_group("bench")  # one worker: its tests share what takes long to start
INDEXES = "select * from pg_indexes where schemaname = 'public' order by indexname"


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with a_rig() as started:
        yield started


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name not in ON_REQUEST])
async def test_a_benchmark_finds_figures(rig: Rig, name: str) -> None:
    figures = [figure async for figure in BENCHMARKS[name].run(rig, TINY)]

    assert figures
    assert all(math.isfinite(figure.value) and figure.what and figure.unit for figure in figures)


async def test_a_table_that_was_filled_has_the_indexes_that_migrations_gave_it(rig: Rig) -> None:
    async with rig.database() as database:
        before = await database.fetch(INDEXES)
        await add_later(database, 10, "filled-")
        after = await database.fetch(INDEXES)

    assert after == before
    assert "jobs_due" in {index["indexname"] for index in after}


def test_the_figures_of_a_run_are_written_as_json_and_as_plots(tmp_path: Path) -> None:
    figures = [
        Figure("twice the ceiling", 20.0, "jobs/s", Beside("ceiling", 10.0), Goal(at_least=3), of="one"),
        Figure("a few", 5.0, "ms", goal=Goal(at_most=8), of="two"),
        Figure("another: published", 5.0, "jobs/s", Beside("Duebell", 10.0), Goal(at_most=1), of="peers"),
        Figure("another: late, p99", 20.0, "ms", Beside("Duebell", 3.0), Goal(at_least=1), of="peers"),
        Figure("Duebell: published", 10.0, "jobs/s", of="peers"),
        Figure("Duebell: late, p99", 3.0, "ms", of="peers"),
    ]

    written = write_results(figures, tmp_path, whole=True)

    assert sorted(path.name for path in written) == ["figures.json", "goals.png", "one.png", "peers.png", "two.png"]
    assert all(path.stat().st_size for path in written)
    first, second, *_ = json.loads((tmp_path / "figures.json").read_text())["figures"]
    assert (first["ratio"], first["met"], first["goal"]) == (2.0, False, "≥ 3")
    assert (second["ratio"], second["met"], second["goal"]) == (None, True, "≤ 8")


def test_a_goal_of_the_figure_is_not_met_by_a_good_ratio() -> None:
    floor = Beside("a floor", 20.0)

    assert Figure("late", 20.0, "ms", floor, Goal(at_most=8)).met
    assert not Figure("late", 20.0, "ms", floor, Goal(at_most=8, of_the_figure=True)).met
    assert Figure("in time", 7.0, "ms", floor, Goal(at_most=8, of_the_figure=True)).met
