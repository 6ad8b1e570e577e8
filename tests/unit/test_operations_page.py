"""docs/operations.md names every log event and every metric there is, and nothing else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from consumer.metrics import Metrics as ConsumerMetrics
from producer.metrics import Metrics as ProducerMetrics
from tests.support.services import ROOT

PAGE = (ROOT / "docs/operations.md").read_text()
PACKAGES = ("consumer", "producer", "delivery", "shared")
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def section(heading: str) -> str:
    [text] = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


def first_column(text: str) -> set[str]:
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)", row)}


def logged_events(file: Path) -> Iterator[str]:
    """The first argument of whatever looks like a call of a logger."""
    for node in ast.walk(ast.parse(file.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS):
            continue
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "parser":
            continue  # of a command line
        match node.args:
            case [ast.Constant(value=str(event)), *_]:
                yield event
            case [ast.JoinedStr(values=[ast.Constant(value="breaker_"), *_]), *_]:
                yield from ("breaker_opened", "breaker_closed")


def test_every_log_event_is_there_and_nothing_else() -> None:
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    assert {event for file in files for event in logged_events(file)} == first_column(section("Logs"))


def exported(families: Iterator[Metric]) -> set[str]:
    return {f"{family.name}_total" if family.type == "counter" else family.name for family in families}


def test_every_metric_is_there_and_nothing_else() -> None:
    registry, other = CollectorRegistry(), CollectorRegistry()
    ConsumerMetrics(registry)
    ProducerMetrics(other)
    ours = (
        exported(iter(registry.collect())) | exported(iter(other.collect())) | {"dependency_up", "loop_silent_seconds"}
    )
    assert ours == first_column(section("Metrics"))


def test_every_role_is_there() -> None:
    for file in ("deploy/roles/postgres.sql", "deploy/roles/rabbitmq.json", "shared/postgres/grants.sql"):
        for role in re.findall(r"duebell_(?:consumer|producer|delivery)", (ROOT / file).read_text()):
            assert f"`{role}`" in section("Who may do what")


def test_every_link_leads_somewhere() -> None:
    for link in re.findall(r"\]\((?!http)([^)#]+)", PAGE):
        assert (ROOT / "docs" / link).exists(), link
