"""The dashboards and alerts as files, for tests that look at them."""

import json
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML

from tests.support.services import ROOT

DASHBOARDS = {file.stem: json.loads(file.read_text()) for file in sorted((ROOT / "grafana/dashboards").glob("*.json"))}
RULES: list[dict[str, Any]] = [
    rule for group in YAML(typ="safe").load(ROOT / "deploy/prometheus/alerts.yml")["groups"] for rule in group["rules"]
]


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    """The expressions of all dashboards and alerts, each with its place."""
    for name, dashboard in DASHBOARDS.items():
        for panel in panels(dashboard):
            for target in panel["targets"]:
                yield f"{name}: {panel['title']} {target['refId']}", target["expr"]
