"""The parser of commands on any bytes: the first byte chooses type and routing key, the rest is the body."""

import atheris

from tests.fuzz.running import fuzz

with atheris.instrument_imports(include=["consumer", "shared"]):
    from consumer.commands.parse import RawCommand, read_command
from tests.hostile.corpus import load
from tests.hostile.invariants import check_command
from tests.support.builders import NOON

LIMIT = 2048
WAYS: list[tuple[str | None, str]] = [
    (None, "schedule.request"),
    (None, "schedule.cancel"),
    ("ScheduleRequest", ""),
    ("ScheduleCancel", ""),
    (None, "schedule.pause"),
    (None, "schedule.resume"),
    (None, "schedule.trigger"),
    (None, "schedule.query"),
    (None, "schedule.bulk"),
]


def check(data: bytes) -> None:
    if data:
        kind, key = WAYS[data[0] % len(WAYS)]
        check_command(read_command(RawCommand(data[1:], kind, key), NOON, LIMIT), data[1:])


if __name__ == "__main__":
    keys = [key if kind is None else None for kind, key in WAYS]
    fuzz("commands", check, (bytes([keys.index(case.key)]) + case.body for case in load() if case.key in keys))
