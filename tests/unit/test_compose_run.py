"""The pure parts of `make compose`: which images it gets, when a container is well, and the tables that it prints."""

import pytest

from tests.support.services import ROOT
from tools.compose.project import PORTS, Container
from tools.compose.report import ImageRow, Row, report
from tools.engine.images import STAND_INS
from tools.engine.layout import ENGINE_ROOT, PROJECT, SOCKET
from tools.engine.pinned import OWN_IMAGE, pinned_images


def test_every_image_that_is_pinned_has_a_stand_in() -> None:
    pinned = pinned_images()
    assert pinned.keys() == {path.name for path in STAND_INS.iterdir()}
    assert pinned.keys() == {"postgres", "rabbitmq", "prometheus", "grafana", "python"}
    assert OWN_IMAGE not in pinned.values()
    assert f"FROM {pinned['python']}\n" in (ROOT / "Dockerfile").read_text()


def test_every_port_of_the_example_is_chosen_anew() -> None:
    example = [line for line in (ROOT / ".env.example").read_text().splitlines() if "_PORT=" in line]
    assert {line.removeprefix("# ").partition("=")[0] for line in example} == PORTS.keys()
    assert all(not line.endswith(f"={port}") for line in example for port in PORTS.values())


def test_the_engine_and_the_command_beside_it_see_its_socket_at_one_path() -> None:
    """On the engine's root other file systems are mounted. testcontainers, unlike `docker`, is outside of it."""
    assert SOCKET.is_relative_to(PROJECT)
    assert not SOCKET.is_relative_to(ENGINE_ROOT)


@pytest.mark.parametrize(
    ("state", "health", "exit_code", "is_well"),
    [
        ("running", "healthy", 0, True),
        ("exited", "", 0, True),
        ("running", "starting", 0, False),
        ("running", "unhealthy", 0, False),
        ("running", "", 0, False),
        ("exited", "", 2, False),
        ("created", "", 0, False),
    ],
)
def test_a_container_is_well_when_it_is_healthy_or_ended_in_good_order(
    state: str, health: str, exit_code: int, is_well: bool
) -> None:
    assert Container("id", "name", state, health, exit_code).is_well == is_well


def test_the_report_names_what_ran_and_what_failed() -> None:
    rows = [Row("up", "8 services healthy", 12.4), Row("status", "exit status 3", 1.0, passed=False)]
    text = report("Docker 28.", [ImageRow("postgres:18.6", "a stand-in")], rows)
    assert "| postgres:18.6 | a stand-in |" in text
    assert "| up | 8 services healthy | 12 |" in text
    assert "| status | **FAILED**: exit status 3 | 1 |" in text
