"""A directory that one living process at a time may use.

A claim holds a lock that the kernel releases when the process dies, in whatever way. A new claim starts clean: it ends
the processes that a killed predecessor left and removes its files, also in directories claimed below.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stack import processes
from stack.errors import DirectoryInUseError

STACK = Path(__file__).parent.parent / ".stack"
LOCK = "lock"
RECORDS = "children"
ELSEWHERE = "elsewhere"
LOGS = "logs"


class Claim:
    """The right to use a directory, until it is released or its holder dies."""

    def __init__(self, directory: Path, lock: int) -> None:
        self.path = directory
        self.records = directory / RECORDS
        self._lock = lock

    def room_elsewhere(self, parent: Path) -> Path:
        """Make a new directory in `parent` that belongs to this one: a link names it, and `empty` removes it, too."""
        room = Path(tempfile.mkdtemp(prefix="duebell-", dir=parent))
        (self.path / ELSEWHERE).symlink_to(room)
        return room

    def empty(self) -> None:
        """Remove everything but the lock and the logs, which may still be read after a run."""
        for entry in self.path.iterdir():
            if entry.name in (LOCK, LOGS):
                continue
            if entry.name == ELSEWHERE:
                shutil.rmtree(entry.readlink(), ignore_errors=True)
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def release(self) -> None:
        os.close(self._lock)


def claim(directory: Path) -> Claim:
    """Take the directory, empty; raises DirectoryInUseError if its holder lives."""
    directory = directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    # The lock's file stays for good: were it deleted, two could each hold the lock of a file of that name.
    lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 20, 0).decode() or "unknown"
        os.close(lock)
        raise DirectoryInUseError(f"{directory} is in use by process {holder}") from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    claimed = Claim(directory, lock)
    clean_up_after_the_dead(directory)
    processes.end_leftovers(claimed.records)
    claimed.empty()
    return claimed


def clean_up_after_the_dead(root: Path) -> None:
    """End the processes and remove the files that killed runs have left in directories below. Those of living runs
    stay.
    """
    for lock in root.glob(f"*/{LOCK}"):
        try:
            claim(lock.parent).release()
        except DirectoryInUseError:
            continue


@contextmanager
def run_directory(name: str, root: Path = STACK) -> Iterator[Path]:
    """Claim a directory for one run of `make demo` or `make test`: the first free of name, name-2, name-3 …

    So several runs in one clone do not disturb each other. Files and processes that killed runs left are removed first.
    """
    clean_up_after_the_dead(root)
    claimed = _claim_first_free(name, root)
    try:
        yield claimed.path
    finally:
        claimed.empty()
        claimed.release()


def _claim_first_free(name: str, root: Path) -> Claim:
    for suffix in ("", *(f"-{number}" for number in range(2, 10))):
        try:
            return claim(root / f"{name}{suffix}")
        except DirectoryInUseError:
            continue
    raise DirectoryInUseError(f"{root}/{name} and its neighbours are all in use")
