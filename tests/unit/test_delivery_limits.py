"""RabbitMQ 4 drops a message of a quorum queue after 20 deliveries unless the queue has another limit. Each quorum
queue that the code, the examples and the documents declare has one.
"""

import re
from pathlib import Path

import pytest

from tests.support.services import ROOT

PLACES = ["client/duebell", "docs", "examples", "shared", "README.md", "client/README.md"]
FILES = [
    path
    for place in PLACES
    for path in ([ROOT / place] if (ROOT / place).is_file() else sorted((ROOT / place).rglob("*")))
    if path.suffix in {".md", ".mjs", ".py"}
    and "node_modules" not in path.parts
    and '"x-queue-type"' in path.read_text()
]
# Queues that an older version declared stay as they are.
WITHOUT = {"client/duebell/listener_queue.py": 1}
# The arguments of one queue stand in one pair of braces, of brackets or of parentheses.
ARGUMENTS = re.compile(r'[{(]([^{}()]*"x-queue-type"[^{}()]*)[})]')


def test_the_places_are_found() -> None:
    assert len(FILES) >= 6


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_quorum_queue_has_a_delivery_limit(path: Path) -> None:
    declared = ARGUMENTS.findall(path.read_text())
    assert declared
    without = [arguments for arguments in declared if '"x-delivery-limit"' not in arguments]
    assert len(without) == WITHOUT.get(str(path.relative_to(ROOT)), 0)
