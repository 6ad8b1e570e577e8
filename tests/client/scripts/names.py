"""Reports the names of programs, and what is said of names that are no good."""

import json

from duebell.app_id import check_app_id, program_name

BEGINNINGS = ["worker.py", "/app/shop/__main__.py", "/usr/bin/uvicorn", "-c", "", "é" * 200]
names = [program_name([first, "--verbose"]) for first in BEGINNINGS]
print(json.dumps([name if name is None or len(name) < 20 else len(name) for name in [*names, program_name([])]]))
for name in ("", "é" * 128):
    try:
        check_app_id(name)
    except ValueError as error:
        print(error)
