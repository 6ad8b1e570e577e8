"""How delayed messages and their exchanges are named: in commands, in settings, in the history, in lists and in logs.
Pure.
"""

import re

# The default exchange has an empty name, which people can neither see nor type.
DEFAULT_EXCHANGE = "(default)"

# RabbitMQ takes names of 255 bytes. A delay exchange is `delay.` and the target, behind AMQP_PREFIX.
MAX_TARGET_BYTES = 180

_NUMBERED = re.compile(r"delayed#([0-9]{1,18})")


def exchange_label(name: str) -> str:
    """Return the name of an exchange as people read it."""
    return name or DEFAULT_EXCHANGE


def exchange_named(label: str) -> str:
    """Return the exchange of which `exchange_label` gives the label."""
    return "" if label == DEFAULT_EXCHANGE else label


def read_target(label: str) -> str:
    """Return the target of a delay exchange that an operator has named. Raises ValueError if it can have none."""
    name = exchange_named(label)
    if len(name.encode()) > MAX_TARGET_BYTES:
        raise ValueError(f"{label[:20]}… has more than {MAX_TARGET_BYTES} bytes")
    if name.startswith("delay."):
        raise ValueError(f"{label} is a delay exchange itself: name the exchange behind it")
    if "\0" in name:
        raise ValueError("an exchange has no NUL in its name")
    return name


def numbered_id(number: int) -> str:
    """Return the id by which commands name this one message, whatever its `message_id` and its name."""
    return f"delayed#{number}"


def number_in(text: str) -> int | None:
    """Return the number of the message that the id names alone; None for any other id."""
    found = _NUMBERED.fullmatch(text)
    return None if found is None else int(found[1])


def history_id(name: str | None, message_id: str | None, number: int) -> str:
    """Return the id under which the history tells of the message."""
    return name or message_id or numbered_id(number)


def routing_key_text(routing_key: bytes) -> str:
    """Return the routing key as it can be shown and stored as text: escapes replace what is not UTF-8, and NUL."""
    return routing_key.decode("utf-8", "backslashreplace").replace("\0", "\\x00")
