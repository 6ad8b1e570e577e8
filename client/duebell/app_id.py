"""The application's name, which goes with its commands: the history of a job tells it. The broker does not check it."""

from collections.abc import Sequence
from pathlib import Path

# AMQP has no longer properties.
MAX_APP_ID_BYTES = 255


def check_app_id(app_id: str) -> str:
    """Return the name, or raise ValueError before a command is sent with it."""
    if not app_id or len(app_id.encode()) > MAX_APP_ID_BYTES:
        raise ValueError(f"app_id: has {len(app_id.encode())} bytes; 1 to {MAX_APP_ID_BYTES} are possible")
    return app_id


def program_name(arguments: Sequence[str]) -> str | None:
    """Return the name of the program that runs with these arguments: `worker` of `worker.py`, `shop` of
    `python -m shop`. None: it has none, as `python -c`.
    """
    path = Path(arguments[0] if arguments else "")
    name = path.absolute().parent.name if path.stem == "__main__" else path.stem
    if not name or name.startswith("-"):
        return None
    return name.encode(errors="ignore")[:MAX_APP_ID_BYTES].decode(errors="ignore") or None
