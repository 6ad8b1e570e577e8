"""Behind a pooler the settings of a service's sessions are those of its role."""

import re

from console.settings import CONSOLE_PLANNER_SETTINGS
from delivery.store.claims import DELIVERY_PLANNER_SETTINGS
from producer.store.lanes import PRODUCER_PLANNER_SETTINGS
from shared.postgres.pool import session_settings
from stack.roles import POSTGRES_SCRIPT, READER, role_of
from stack.services import SERVICES

SCRIPT = POSTGRES_SCRIPT.read_text()


def test_a_role_has_what_its_service_asks_for() -> None:
    """test_pooler.py starts the services with these roles: here is what may be added and forgotten."""
    of_all = dict(re.findall(r"\('(\w+)', '(\w+)'\)", SCRIPT))
    assert of_all == session_settings()
    [with_them] = re.findall(r"unnest\(array\[(.*?)\]\) as role", SCRIPT)
    assert set(re.findall(r"'(\w+)'", with_them)) == {*(role_of(service) for service in SERVICES), READER}
    of_one = {
        role: dict.fromkeys(re.findall(r"'(\w+)'", names), "off")
        for role, names in re.findall(r"\('(\w+)', array\[(.*?)\]\)", SCRIPT)
    }
    assert of_one == {
        "duebell_producer": PRODUCER_PLANNER_SETTINGS,
        "duebell_delivery": DELIVERY_PLANNER_SETTINGS,
        READER: CONSOLE_PLANNER_SETTINGS,
    }
