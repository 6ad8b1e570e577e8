"""A town to simulate in. What depends on real time in the services' steps is taken out, so that a history that was
found once is found again: pauses between tries, and the breath that a long computation takes.
"""

from collections.abc import Iterator

import pytest
import structlog

from tests.simulation.town import Town, a_town
from tests.support.stores import Stores


@pytest.fixture
def town(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> Iterator[Town]:
    monkeypatch.setattr("shared.runtime.loops.MAX_HOLD_SECONDS", float("inf"))
    monkeypatch.setattr("shared.runtime.backoff.Backoff.next_pause", lambda _: 0.0)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    try:
        with a_town(stores) as made:
            yield made
    finally:
        structlog.reset_defaults()
