"""docs/operations/upgrading.md names every right in RabbitMQ that this release needs and 0.1.0 did not, for operators
who keep the rights by hand.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from shared.contract.names import (
    BULK_KEY,
    CANCEL_KEY,
    PAUSE_KEY,
    QUERY_KEY,
    REQUEST_KEY,
    RESUME_KEY,
    TRIGGER_KEY,
    Names,
)
from stack.roles import APPLICATION, DEFINITIONS
from tests.support.services import ROOT

RELEASED = Path(__file__).parent / "rabbitmq-0.1.0.json"
PAGE = ROOT / "docs" / "operations" / "upgrading.md"
# An exchange of an application, and the delay exchange before it: the rights name the beginnings of both.
TARGET = f"{APPLICATION}."
NAMES = (*Names().exchanges, *Names().queues, f"{TARGET}x", Names().delay_exchange(f"{TARGET}x"))
KEYS = (REQUEST_KEY, CANCEL_KEY, PAUSE_KEY, RESUME_KEY, TRIGGER_KEY, QUERY_KEY, BULK_KEY)


def rights_in(definitions: Path) -> dict[str, set[str]]:
    """Return for each user what it may do: `read`, `write` or `configure` and a name, or a routing key."""
    content = json.loads(definitions.read_text().replace("@PREFIX@", ""))
    rights: dict[str, set[str]] = {user["name"]: set() for user in content["users"]}
    for permission in content["permissions"]:
        for what in ("configure", "write", "read"):
            rights[permission["user"]] |= {f"{what} {name}" for name in matching(permission[what], NAMES)}
    for permission in content["topic_permissions"]:
        rights[permission["user"]] |= {f"key {key}" for key in matching(permission["write"], KEYS)}
    return rights


def matching(pattern: str, names: tuple[str, ...]) -> Iterator[str]:
    return (name for name in names if re.search(pattern, name))


def test_the_page_about_upgrading_names_every_new_right() -> None:
    before, after = rights_in(RELEASED), rights_in(DEFINITIONS)
    [step] = re.findall(r"^1\. \*\*Rights in RabbitMQ\*\*.*?^2\. ", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    new = {user: rights - before[user] for user, rights in after.items() if user in before}
    assert new["duebell_consumer"] == {f"read {Names().delayed}", f"read {Names().expired}"}
    for right in set().union(*new.values()):
        assert f"`{right.partition(' ')[2].removesuffix('x')}" in step, right
    for user in after.keys() - before:
        assert f"`{user}`" in step


def test_no_right_of_0_1_0_is_taken_away() -> None:
    """Its services run on beside those of this release."""
    before, after = rights_in(RELEASED), rights_in(DEFINITIONS)
    assert {user: rights - after[user] for user, rights in before.items() if rights - after[user]} == {}
