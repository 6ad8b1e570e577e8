"""`python -m tests.chaos.service_with_fault producer`: the service, which kills or freezes itself the n-th time that it
reaches a named point. The environment has the point, the signal and n. Before the signal, the process writes to a file,
so that the run can tell whether the point was reached.
"""

import os
import runpy
import signal
import sys
from pathlib import Path

from shared.runtime.fault_points import Point, listen

POINT, NTH, SIGNAL, REACHED_FILE = "CHAOS_POINT", "CHAOS_NTH", "CHAOS_SIGNAL", "CHAOS_REACHED_FILE"


def arm(point: Point, nth: int, number: signal.Signals, word: Path) -> None:
    passed = 0

    def strike(reached: Point) -> None:
        nonlocal passed
        if reached is not point:
            return
        passed += 1
        if passed == nth:
            with word.open("a") as file:
                file.write(f"{point}\n")
            os.kill(os.getpid(), number)

    listen(strike)


def main() -> None:
    service = sys.argv[1]
    arm(
        Point(os.environ[POINT]),
        int(os.environ[NTH]),
        signal.Signals(int(os.environ[SIGNAL])),
        Path(os.environ[REACHED_FILE]),
    )
    sys.argv = [service]
    runpy.run_module(service, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
