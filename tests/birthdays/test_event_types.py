"""Event types: found by themselves, checked at the start, refused if unknown."""

import re
import sys
from datetime import date
from pathlib import Path

import pytest

from examples.birthdays.event_types import EVENT_TYPES, UnsupportedEventType, event_type, find_event_types
from examples.birthdays.people import User
from tests.support.services import ROOT

USER = User("Ada", "Lovelace", "UTC", {"BIRTHDAY": date(1990, 3, 1)})
THIRD = """
from examples.birthdays.event_types.event_type import EventType
from examples.birthdays.event_types.yearly import YEARLY

EVENT_TYPE = EventType("{name}", lambda user: f"{{user.first_name}}, renew your passport", YEARLY)
"""


def find_in(package: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(package.parent))
    for name in [name for name in sys.modules if name.split(".")[0] == package.name]:
        monkeypatch.delitem(sys.modules, name)
    return find_event_types([str(package)], package.name)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    made = tmp_path / "more_event_types"
    made.mkdir()
    (made / "__init__.py").touch()
    return made


def test_the_event_types_have_their_messages() -> None:
    assert EVENT_TYPES.keys() == {"BIRTHDAY", "ANNIVERSARY"}
    assert event_type("BIRTHDAY").message(USER) == "Hey, Ada Lovelace it's your birthday"
    assert event_type("ANNIVERSARY").message(USER) == "Happy anniversary, Ada!"


def test_an_unknown_event_type_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedEventType, match="'REMINDER' is not an event type; there are ANNIVERSARY, BIRTHDAY"):
        event_type("REMINDER")


def test_the_event_type_of_the_readme_works(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (ROOT / "examples/birthdays/README.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    (package / "check_up.py").write_text(example)
    found = find_in(package, monkeypatch)
    assert isinstance(found, dict)
    assert found["CHECK_UP"].message(USER) == "Ada, it is time for your check-up"
    for link in re.findall(r"\]\((?!http)([^)#]+)", readme):
        assert (ROOT / "examples/birthdays" / link).exists(), link


def test_another_event_type_is_one_small_file(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (package / "passport.py").write_text(THIRD.format(name="PASSPORT"))
    (package / "not_one.py").write_text("X = 1")
    found = find_in(package, monkeypatch)
    assert isinstance(found, dict)
    assert found.keys() == {"PASSPORT"}
    assert found["PASSPORT"].message(USER) == "Ada, renew your passport"


@pytest.mark.parametrize(
    "files",
    [
        {"bad": THIRD.format(name="not a topic")},
        {"bad": "EVENT_TYPE = 'PASSPORT'"},
        {"one": THIRD.format(name="PASSPORT"), "two": THIRD.format(name="PASSPORT")},
    ],
)
def test_an_event_type_that_cannot_work_stops_the_start(
    package: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]
) -> None:
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    with pytest.raises(ValueError, match=r"EVENT_TYPE must be|there is another"):
        find_in(package, monkeypatch)
