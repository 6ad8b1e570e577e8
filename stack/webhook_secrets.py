"""The signing secrets of a stack: one for the example receiver, and those that the user has set. Delivery gets the
secrets, consumer and delivery get their names: a request with a secret that delivery does not know is refused when it
is scheduled.
"""

import json
from collections.abc import Mapping
from pathlib import Path

FILE, SECRETS, NAMES = "WEBHOOK_SECRETS_FILE", "WEBHOOK_SECRETS", "WEBHOOK_SECRET_NAMES"
# A stack sets these itself: those of the user are in what it sets.
MERGED = (SECRETS, NAMES)


def secret_settings(demo: Mapping[str, str], given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings of the consumer and those of delivery. `demo` is a name and its secret, `given` the user's
    environment. What cannot be read is passed on: delivery says what is wrong with it.
    """
    variable = _read(given.get(SECRETS, ""))
    if variable is None:
        return {}, {SECRETS: given[SECRETS]}
    secrets = {**demo, **variable}
    names = given.get(NAMES) or ",".join({**secrets, **(_read_file(given.get(FILE)) or {})})
    return {NAMES: names}, {NAMES: names, SECRETS: json.dumps(secrets)}


def _read(text: str) -> dict[str, object] | None:
    try:
        content = json.loads(text or "{}")
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _read_file(file: str | None) -> dict[str, object] | None:
    try:
        return _read(Path(file).read_text()) if file else None
    except (OSError, ValueError):
        return None
