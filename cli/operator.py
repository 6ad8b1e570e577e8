"""Who types the commands: their name is a header of each, for the history of the job."""

import getpass
import os

APP_ID = "duebell-cli"
MAX_NAME_LENGTH = 100


def operator_name() -> str:
    """Return DUEBELL_OPERATOR, or the login name; a container may run under a user id that has no name."""
    try:
        name = os.environ.get("DUEBELL_OPERATOR", "").strip() or getpass.getuser()
    except (KeyError, OSError):
        name = f"uid {os.getuid()}"
    return name[:MAX_NAME_LENGTH]
