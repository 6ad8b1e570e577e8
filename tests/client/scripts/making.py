"""Makes a request of each list of fields in its standard argument, and reports what the client says of it. `$datetime`
and `$zone` stand for a datetime and a ZoneInfo, which JSON does not have.
"""

import json
import sys
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from duebell import InvalidCommand, request


def given(value: object) -> Any:
    match str(value).split(" ", 1):
        case ["$datetime", moment]:
            return datetime.fromisoformat(moment)
        case ["$zone", name]:
            return ZoneInfo(name)
    return value


def report(fields: dict[str, Any]) -> dict[str, object]:
    try:
        made = request(**{"job_id": "a", **{name: given(value) for name, value in fields.items()}})
    except InvalidCommand as error:
        return {"errors": error.errors}
    return {"made": made.model_dump(exclude_unset=True)}


for fields in json.loads(sys.argv[1]):
    print(json.dumps(report(fields)))
