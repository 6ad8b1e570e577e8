"""`python -m tools.engine COMMAND …` runs a command where a container engine answers, and ends the engine with it."""

import sys

from stack.errors import StackError
from stack.up import stop_on_signals
from tools.engine.namespace import run_beside_engine


def main() -> int:
    stop_on_signals()
    try:
        return run_beside_engine(sys.argv[1:])
    except StackError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
