"""The simulation's database. Two things in the services' steps depend on real time and are switched off, so that a
history that was found once is found again: pauses between retries, and giving way in a long computation.
"""

from collections.abc import Iterator

import pytest
import structlog

from tests.simulation.database import SimDatabase, a_sim_database
from tests.support.stores import Stores


@pytest.fixture
def database(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimDatabase]:
    monkeypatch.setattr("shared.runtime.loops.MAX_HOLD_SECONDS", float("inf"))
    monkeypatch.setattr("shared.runtime.backoff.Backoff.next_pause", lambda _: 0.0)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    try:
        with a_sim_database(stores) as made:
            yield made
    finally:
        structlog.reset_defaults()
