"""Simulated histories of the core steps: none breaks a promise; each of several mistakes is found by one that does."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.simulation.ledger import Broken
from tests.simulation.machine import Duebell
from tests.simulation.sabotage import MISTAKES
from tests.simulation.town import Town

# The same histories every time: a change of the code can break them, chance cannot.
HISTORIES = settings(
    max_examples=50,
    stateful_step_count=30,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
UNTIL_FOUND = settings(HISTORIES, max_examples=600, phases=[Phase.generate], report_multiple_bugs=False)


def test_no_history_breaks_a_promise(town: Town) -> None:
    run_state_machine_as_test(Duebell.in_town(town), settings=HISTORIES)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: str(mistake.__name__))
def test_a_mistake_is_found(
    town: Town, monkeypatch: pytest.MonkeyPatch, mistake: Callable[[pytest.MonkeyPatch], None]
) -> None:
    mistake(monkeypatch)
    with pytest.raises(Broken, match=MISTAKES[mistake]):
        run_state_machine_as_test(Duebell.in_town(town), settings=UNTIL_FOUND)
