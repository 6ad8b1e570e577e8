"""Living processes, read from /proc, independent of the stack's own records."""

from pathlib import Path

from stack.processes import start_time, wait_until


def processes_with_text(text: str) -> set[int]:
    """Every living process that has this text on its command line or in its environment, whatever its parent."""
    found = set()
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            content = (directory / "cmdline").read_bytes() + (directory / "environ").read_bytes()
        except OSError:
            continue
        if text.encode() in content and start_time(int(directory.name)) is not None:
            found.add(int(directory.name))
    return found


def ends(pid: int, seconds: float = 5) -> bool:
    """Tell whether the process ends within `seconds`."""
    return wait_until(lambda: start_time(pid) is None, seconds)


def no_process_has_text(text: str, seconds: float = 5) -> bool:
    """Tell whether within `seconds` no living process has the text any more."""
    return wait_until(lambda: not processes_with_text(text), seconds)
