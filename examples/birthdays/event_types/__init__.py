"""The event types there are: each a small module here with an EVENT_TYPE in it, found by itself. So a third one is one
new file, and nothing else changes: neither API nor tables nor relay name any type but BIRTHDAY.
"""

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from pkgutil import iter_modules

from examples.birthdays.event_types.event_type import EventType
from examples.birthdays.people import BIRTHDAY

_NAME = re.compile("[A-Z][A-Z_]{0,39}")  # in lower case it becomes part of a topic


class UnsupportedEventType(ValueError):
    pass


def find_event_types(directories: Iterable[str], package: str) -> dict[str, EventType]:
    """Return all event types by name. Raises ValueError at the start for one that cannot work, not on a user's
    birthday.
    """
    found: dict[str, EventType] = {}
    for module in iter_modules(directories):
        kind = getattr(import_module(f"{package}.{module.name}"), "EVENT_TYPE", None)
        if kind is None:
            continue
        if not isinstance(kind, EventType) or not _NAME.fullmatch(kind.name):
            raise ValueError(f"{module.name}: EVENT_TYPE must be an EventType with a name of capital letters")
        if kind.name in found:
            raise ValueError(f"{module.name}: there is another event type called {kind.name}")
        found[kind.name] = kind
    return found


EVENT_TYPES: Mapping[str, EventType] = find_event_types(__path__, __name__)
OPTIONAL_TYPES = tuple(sorted(EVENT_TYPES.keys() - {BIRTHDAY}))


def event_type(name: str) -> EventType:
    try:
        return EVENT_TYPES[name]
    except KeyError:
        supported = ", ".join(sorted(EVENT_TYPES))
        raise UnsupportedEventType(f"{name[:40]!r} is not an event type; there are {supported}") from None
