"""The parser of commands on any bytes: the first byte chooses type and routing key, the rest is the body."""

import atheris

from tests.fuzz.running import fuzz

with atheris.instrument_imports(include=["consumer", "shared"]):
    from consumer.commands import RawCommand, read_command
from tests.hostile.corpus import load
from tests.hostile.invariants import check_command
from tests.support.builders import NOON

LIMIT = 2048
WAYS: list[tuple[str | None, str]] = [
    (None, "schedule.request"),
    (None, "schedule.cancel"),
    ("ScheduleRequest", ""),
    ("ScheduleCancel", ""),
]


def check(data: bytes) -> None:
    if data:
        kind, key = WAYS[data[0] % len(WAYS)]
        check_command(read_command(RawCommand(data[1:], kind, key), NOON, LIMIT), data[1:])


if __name__ == "__main__":
    fuzz("commands", check, (bytes([1 if case.key == "schedule.cancel" else 0]) + case.body for case in load()))
