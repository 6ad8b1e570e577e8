"""`python -m tests.chaos.faulty producer`: the service itself, which kills or freezes itself the n-th time that it
reaches a named point. The point, what to do there and how often to pass first come from the environment; before it
strikes, it leaves word in a file, so that nobody has to guess whether the point was reached.
"""

import os
import runpy
import signal
import sys
from pathlib import Path

from shared.runtime.fault_points import Point, listen

POINT, NTH, SIGNAL, WORD = "CHAOS_POINT", "CHAOS_NTH", "CHAOS_SIGNAL", "CHAOS_WORD"


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
        Path(os.environ[WORD]),
    )
    sys.argv = [service]
    runpy.run_module(service, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
