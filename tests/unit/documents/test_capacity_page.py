"""docs/operations/capacity.md says how many connections to Postgres a process may have at most."""

import re

from delivery.main import POOL_SIZE
from producer.settings import ProducerSettings
from tests.support.services import ROOT

TWO_MAIN_LANES, OTHER_LANES, LISTENER = 2, 2 + 3, 1


def number_in(file: str, pattern: str) -> int:
    [found] = re.findall(pattern, (ROOT / file).read_text())
    return int(found)


def test_the_page_has_the_sizes_of_the_pools() -> None:
    page = (ROOT / "docs/operations/capacity.md").read_text()
    said = {
        name: int(number) for name, number in re.findall(r"^\| (\w+) \| (\d+) \| \d+ \| \d+ \|$", page, re.MULTILINE)
    }
    in_flight = ProducerSettings.model_fields["claims_in_flight"].default
    of_producer = number_in("producer/main.py", r"pool_size = sum\(.*\) \+ len\(delayed_lanes\) \+ (\d+)")
    assert said == {
        "consumer": number_in("consumer/main.py", r"open_pool\(.*size=(\d+)"),
        "producer": TWO_MAIN_LANES * in_flight + OTHER_LANES + of_producer + LISTENER,
        "delivery": POOL_SIZE,
        "console": number_in("console/main.py", r"open_pool\(.*size=(\d+)"),
    }
