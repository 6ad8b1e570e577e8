"""The errors of the local stack. Each message says what to do next.

StackError
├── DirectoryInUseError  another living process holds the directory
└── StartError           something did not come up; carries the last lines of its log
"""

from pathlib import Path

LINES_SHOWN = 20


class StackError(Exception):
    """The local stack cannot go on; the message is meant to be printed as it is, without a stack trace."""


class DirectoryInUseError(StackError):
    """A living process already runs a stack in this directory."""


class StartError(StackError):
    """One part of the stack did not come up."""

    def __init__(self, what: str, *, log: Path, next_step: str) -> None:
        self.log = log
        tail = last_lines(log)
        super().__init__(f"{what}\n  last lines of {log}:\n{tail}\n  what to do: {next_step}")


def last_lines(log: Path, count: int = LINES_SHOWN) -> str:
    """Return the end of a log, indented for a message."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        lines = []
    return "\n".join(f"    | {line}" for line in lines[-count:]) or "    | (nothing)"
