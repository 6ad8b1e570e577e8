"""docs/reference says what the code says: settings, metrics, log events, messages and commands."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from shared.runtime.settings import Settings
from tests.support.services import ROOT
from tools.contract.schemas import MODELS
from tools.reference.command_line import commands
from tools.reference.log_events import log_events
from tools.reference.log_sentences import SENTENCES
from tools.reference.metrics import exported, metrics
from tools.reference.pages import REFERENCE, REFERENCE_PAGES
from tools.reference.settings import SERVICES

NEVER_CALLED_BY_A_REGISTRY = {"dependency_up", "loop_silent_seconds"}  # made when a service runs


def first_column(page: str) -> set[str]:
    return set(re.findall(r"^\| `([^`]+)` \|", (REFERENCE / page).read_text(), re.MULTILINE))


@pytest.mark.parametrize("path", REFERENCE_PAGES, ids=lambda path: path.name)
def test_a_page_is_what_the_code_gives(path: Path) -> None:
    assert path.read_text() == REFERENCE_PAGES[path](), "write it anew: make reference"


def test_every_page_of_the_directory_is_generated() -> None:
    assert set(REFERENCE.iterdir()) == set(REFERENCE_PAGES)


def test_every_setting_of_every_service_is_there() -> None:
    page = (REFERENCE / "settings.md").read_text()
    everywhere, *sections = page.split("\n## ")[1:]
    for service, section in zip(SERVICES, sections, strict=True):
        missing = [
            name for name in SERVICES[service].model_fields if f"| `{name.upper()}` |" not in everywhere + section
        ]
        assert not missing
    assert all(f"| `{name.upper()}` |" in page for name in Settings.model_fields)


def test_every_metric_that_a_service_exports_is_there_and_nothing_else() -> None:
    assert exported().keys() | NEVER_CALLED_BY_A_REGISTRY == metrics().keys() == first_column("metrics.md")


def test_every_log_event_has_a_sentence_and_every_sentence_an_event() -> None:
    assert log_events().keys() == SENTENCES.keys() == first_column("log-events.md")
    assert len(log_events()) > 40


def test_a_sentence_is_one() -> None:
    assert [text for text in SENTENCES.values() if not re.fullmatch(r"[A-Z`].*\.", text)] == []


def test_every_command_is_there() -> None:
    page = (REFERENCE / "command-line.md").read_text()
    assert re.findall(r"^## duebell (.+)$", page, re.MULTILINE) == list(commands())
    assert {"schedule", "deliveries replay", "parked resend"} <= commands().keys()


def test_every_role_is_on_the_page_about_installing() -> None:
    page = (ROOT / "docs/operations/install.md").read_text()
    [section] = re.findall(r"^## Who may do what\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    for file in ("deploy/roles/postgres.sql", "deploy/roles/rabbitmq.json", "shared/postgres/grants.sql"):
        for role in re.findall(r"duebell_(?:consumer|producer|delivery)", (ROOT / file).read_text()):
            assert f"`{role}`" in section


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_page_about_messages_names_every_field(model: type[BaseModel]) -> None:
    page = (ROOT / "docs/messages.md").read_text()
    [section] = [text for text in page.split("\n## ") if model.__name__ in text.partition("\n")[0]]
    assert [name for name in model.model_fields if f"`{name}`" not in section] == []
