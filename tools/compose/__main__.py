"""`python -m tools.compose` runs docker-compose.yml beside a private container engine, and prints what was seen."""

import sys

from stack.errors import StackError
from stack.up import stop_on_signals
from tools.engine.namespace import run_beside_engine


def main() -> int:
    stop_on_signals()
    try:
        return run_beside_engine([sys.executable, "-m", "tools.compose.run"])
    except StackError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("stopped; nothing is left running or mounted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
