"""Coverage of processes that tests start: of the command line and the console, whose reading code no test calls
otherwise. The services are not measured: their work would take twice as long.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

MEASURES = "DUEBELL_TESTS_MEASURE_COVERAGE"  # set in the workers of a run that measures
_ROOT = Path(__file__).parents[2]


def measured_environment() -> Mapping[str, str]:
    """Return the variables that make coverage measure a process, or nothing if the run does not measure. Each process
    has a file of its own beside those of the workers, and all of them are combined at the end.
    """
    if MEASURES not in os.environ:
        return {}
    results = _ROOT / ".stack" / f"coverage.{uuid4().hex}"
    return {"COVERAGE_PROCESS_START": str(_ROOT / "pyproject.toml"), "COVERAGE_FILE": str(results)}
