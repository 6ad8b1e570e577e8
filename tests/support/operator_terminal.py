"""An operator's shell for the commands of docs/operations: it knows the programs that the pages name."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from stack.unprivileged import find_programs
from tests.documents.terminal import Terminal
from tests.support.services import ROOT


@contextmanager
def operator_terminal(directory: Path, environment: Mapping[str, str]) -> Iterator[Terminal]:
    """In a new directory, which has the files of deploy/ and the command line like a checkout. What the shell leaves
    running ends with the block."""
    directory.mkdir()
    for name in ("deploy", "duebell"):
        (directory / name).symlink_to(ROOT / name)
    places = [str(directory), str(Path(sys.executable).parent), str(find_programs()), os.environ["PATH"]]
    terminal = Terminal(directory, {"PYTHONPATH": str(ROOT), **environment, "PATH": ":".join(places)})
    try:
        yield terminal
    finally:
        terminal.close()
