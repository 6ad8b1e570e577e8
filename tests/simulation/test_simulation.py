"""Simulated histories of the services' steps: none breaks a promise, and each planted mistake is found."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import FlakyFailure
from hypothesis.stateful import run_state_machine_as_test

from tests.simulation.database import SimDatabase
from tests.simulation.ledger import PromiseBroken
from tests.simulation.planted_mistakes import PLANTED_MISTAKES
from tests.simulation.state_machine import Duebell

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


def test_no_history_breaks_a_promise(database: SimDatabase) -> None:
    run_state_machine_as_test(Duebell.on_database(database), settings=HISTORIES)


@pytest.mark.parametrize(
    ("mistake", "known_seed"), PLANTED_MISTAKES, ids=[mistake.__name__ for mistake, _ in PLANTED_MISTAKES]
)
def test_a_mistake_is_found(
    database: SimDatabase,
    monkeypatch: pytest.MonkeyPatch,
    mistake: Callable[[pytest.MonkeyPatch], None],
    known_seed: int,
) -> None:
    mistake(monkeypatch)
    # Which promise is broken first depends on which worker gets a lock first. And all may be well when the history is
    # run again, which Hypothesis reports as a FlakyFailure. Without a mistake, no history breaks any promise.
    with pytest.raises((PromiseBroken, FlakyFailure)):
        run_state_machine_as_test(seed(known_seed)(Duebell.on_database(database)), settings=UNTIL_FOUND)
