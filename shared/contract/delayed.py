"""How a delayed message is named in the history, in lists and in logs. Pure."""


def history_id(name: str | None, message_id: str | None, number: int) -> str:
    """Return the id under which the history tells of the message."""
    return name or message_id or f"delayed-{number}"


def routing_key_text(routing_key: bytes) -> str:
    """Return the routing key as it can be shown and stored as text: escapes replace what is not UTF-8, and NUL."""
    return routing_key.decode("utf-8", "backslashreplace").replace("\0", "\\x00")
