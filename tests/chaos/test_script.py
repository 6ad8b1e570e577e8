"""The script is a pure function of its seed, and the full matrix leaves nothing out."""

from collections import Counter

import pytest

from shared.runtime.fault_points import Point
from tests.chaos.faults import BROKER, POSTGRES, SERVICES, Fault, targets_of, track_of
from tests.chaos.script import MIXED, MIXED_SECONDS, ROUND_SECONDS, Strike, full_matrix, write_script


def test_the_same_seed_gives_the_same_script() -> None:
    assert write_script(7, 600, full_matrix(600)) == write_script(7, 600, full_matrix(600))


def test_the_order_of_the_wanted_faults_does_not_matter() -> None:
    wanted = full_matrix(150)
    assert write_script(7, 150, wanted) == write_script(7, 150, dict(reversed(wanted.items())))


def test_another_seed_gives_another_script() -> None:
    scripts = [write_script(seed, 600, full_matrix(600)) for seed in (1, 2)]
    assert scripts[0] != scripts[1]
    assert Counter(strike.label for strike in scripts[0]) == Counter(strike.label for strike in scripts[1])


@pytest.mark.parametrize("seconds", [1, ROUND_SECONDS, 600])
def test_the_full_matrix_strikes_every_target_of_every_fault(seconds: int) -> None:
    script = write_script(3, seconds, full_matrix(seconds))
    assert {(strike.fault, strike.target) for strike in script} == {
        (fault, target) for fault in Fault for target in targets_of(fault)
    }
    assert all(0 <= strike.at <= seconds for strike in script)


def test_longer_runs_strike_more_often() -> None:
    assert full_matrix(4 * ROUND_SECONDS)[Fault.KILL] == 4 * full_matrix(ROUND_SECONDS)[Fault.KILL]


def test_a_fault_that_is_not_wanted_does_not_strike() -> None:
    script = write_script(3, 60, {Fault.KILL: 5})
    assert Counter(strike.target for strike in script) == dict.fromkeys(SERVICES, 5)


@pytest.mark.parametrize(
    ("script", "kills_of_each"),
    [(write_script(3, MIXED_SECONDS, MIXED), 7), (write_script(3, 600, full_matrix(600)), 40)],
    ids=["in make test", "make chaos"],
)
def test_a_run_kills_each_service_many_times_and_strikes_at_every_point(
    script: list[Strike], kills_of_each: int
) -> None:
    kills = [strike for strike in script if strike.fault in {Fault.KILL, Fault.KILL_AT_POINT}]
    assert min(Counter(strike.track for strike in kills).values()) >= kills_of_each
    assert {strike.target for strike in kills} == {*SERVICES, *Point}


def test_every_target_has_its_track() -> None:
    assert [track_of(point) for point in (Point.CONSUMER_RECEIVED, Point.DELIVERY_CALLED)] == ["consumer", "delivery"]
    assert {track_of(BROKER), track_of(POSTGRES)} == {"stores"}
    assert [track_of(service) for service in SERVICES] == list(SERVICES)
