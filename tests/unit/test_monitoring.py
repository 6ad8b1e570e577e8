"""Dashboards and alerts as files: they are what they were made from, complete, and fit Grafana's schema."""

import json
import re
import shlex
import shutil
import subprocess
from itertools import combinations
from typing import Any

import pytest
import typer.main
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from cli.app import app
from tests.support.eventually import PATIENCE
from tests.support.monitoring import DASHBOARDS, RULES, panels
from tests.support.services import ROOT
from tools.dashboards.__main__ import DASHBOARDS as DIRECTORY
from tools.dashboards.__main__ import rendered

EACH = pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS.keys())


def test_the_files_are_what_the_pages_say() -> None:
    """If not: python -m tools.dashboards."""
    assert {file: file.read_text() for file in DIRECTORY.glob("*.json")} == rendered()


@EACH
def test_a_dashboard_fits_grafanas_schema(dashboard: dict[str, Any]) -> None:
    """Read into Grafana's own types and written again: what they do not know would be missing."""
    register_default_plugins()
    assert json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard))) == dashboard


@EACH
def test_every_panel_says_what_it_shows(dashboard: dict[str, Any]) -> None:
    for panel in panels(dashboard):
        assert panel["title"], panel
        assert panel["description"].endswith("."), panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
        assert panel["targets"], panel["title"]
        assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]
        if panel["type"] != "state-timeline":
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


@EACH
def test_a_dashboard_is_short_and_begins_with_its_numbers(dashboard: dict[str, Any]) -> None:
    assert [panel["type"] for panel in dashboard["panels"][:8]] == ["stat"] * 8
    assert len([panel for panel in panels(dashboard) if panel["type"] != "stat"]) <= 8


@EACH
def test_panels_fill_the_width_and_do_not_overlap(dashboard: dict[str, Any]) -> None:
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)
    for top in {place["y"] for place in places}:
        assert sum(place["w"] for place in places if place["y"] == top) == 24, f"the line at {top} has a hole"


@EACH
def test_links_lead_to_dashboards_that_are_there(dashboard: dict[str, Any]) -> None:
    uids = {other["uid"] for other in DASHBOARDS.values()}
    assert dashboard["links"][0]["tags"] == ["duebell"]
    assert dashboard["tags"] == ["duebell"]
    urls = [link["url"] for panel in panels(dashboard) for link in panel.get("links", [])]
    assert {url.removeprefix("/d/") for url in urls} <= uids


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_every_alert_has_a_summary_and_a_paragraph_to_read(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"]
    page, anchor = rule["annotations"]["runbook"].split("#")
    assert anchor == rule["alert"].lower()
    paragraphs = re.split(r"^## ", (ROOT / page).read_text(), flags=re.MULTILINE)
    [paragraph] = [text for text in paragraphs if text.splitlines()[0].strip() == rule["alert"]]
    assert len(paragraph.split()) > 30, "a person on call needs more than that"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_every_alert_names_a_command_that_can_be_run(rule: dict[str, Any]) -> None:
    program, *arguments = shlex.split(rule["annotations"]["next_step"].replace("{{ $labels.job }}", "producer"))
    if program != "duebell":
        assert program in {"docker", "psql", "rabbitmqctl"}
        return
    read_by_the_command_line(arguments)


def read_by_the_command_line(arguments: list[str]) -> None:
    """Raise if the command line has no such command, or refuses its options. Nothing is run."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        assert arguments[0] in command.commands, arguments
        command = command.commands[arguments.pop(0)]
    command.make_context("duebell", arguments)


def test_every_command_that_a_page_for_operators_names_is_one() -> None:
    pages = "".join(page.read_text() for page in sorted((ROOT / "docs" / "operations").glob("*.md")))
    named = re.findall(r"`duebell\s+([^`]+)`", pages)
    assert len(named) > 10
    for arguments in named:
        read_by_the_command_line(shlex.split(arguments))


@pytest.mark.parametrize(
    "command",
    [
        ("check", "config", "deploy/prometheus/prometheus.yml"),
        ("check", "rules", "deploy/prometheus/alerts.yml"),
        ("test", "rules", "deploy/prometheus/alerts_test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_is_content(command: tuple[str, ...]) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is missing: `make prometheus` installs it, and `make test` does")
    outcome = subprocess.run(
        [program, *command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_every_alert_is_tested() -> None:
    tested = (ROOT / "deploy/prometheus/alerts_test.yml").read_text()
    assert [rule["alert"] for rule in RULES if f"- alertname: {rule['alert']}\n" not in tested] == []
