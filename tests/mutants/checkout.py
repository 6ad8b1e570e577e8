"""Copies of the checkout to make mistakes in: the checkout itself is never changed."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.mutant import CodeHasMoved, Mutant
from tests.support.services import ROOT

# What is tracked, and what is new and not ignored: a test that was just written is to be run, too.
LIST_FILES = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")


@contextmanager
def a_copy(mutant: Mutant | None = None) -> Iterator[Path]:
    """A temporary directory with the files as they are now, and with the mutant's mistake, if one is given. A new
    directory for each: in one that is used again, Python could take the bytecode of the mutant before.
    """
    with tempfile.TemporaryDirectory(prefix="duebell-mutant-") as name:
        directory = Path(name)
        for file in _files():
            (directory / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, directory / file)
        (directory / ".venv").symlink_to(ROOT / ".venv")
        if mutant is not None:
            path = directory / mutant.file
            if not path.exists():
                raise CodeHasMoved(f"the code has moved: mutant {mutant.name}: there is no {mutant.file}")
            path.write_text(mutant.mutated(path.read_text()))
        yield directory


def _files() -> list[str]:
    listed = subprocess.run(LIST_FILES, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    return [file for file in listed if file and (ROOT / file).is_file() and not (ROOT / file).is_symlink()]
