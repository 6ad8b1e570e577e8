"""Which processes there are: the tests' own look at the machine, independent of what the stack believes."""

from pathlib import Path

from stack.processes import start_time, wait_until


def processes_that_know(text: str) -> set[int]:
    """Every living process that has this text on its command line or in its environment, whoever its parent is."""
    found = set()
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            known = (directory / "cmdline").read_bytes() + (directory / "environ").read_bytes()
        except OSError:
            continue
        if text.encode() in known and start_time(int(directory.name)) is not None:
            found.add(int(directory.name))
    return found


def ends(pid: int, seconds: float = 5) -> bool:
    """Whether the process ends within so many seconds."""
    return wait_until(lambda: start_time(pid) is None, seconds)


def nothing_knows(text: str, seconds: float = 5) -> bool:
    """Whether, within so many seconds, no process is left that knows the text."""
    return wait_until(lambda: not processes_that_know(text), seconds)
