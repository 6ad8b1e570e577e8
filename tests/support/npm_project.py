"""JavaScript projects of this repository, installed by `npm ci` from their lock files: below `.stack/`, by the hash of
the lock, so that the tree stays clean and only the first run has to fetch anything.
"""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

from tests.support.services import ROOT

INSTALLED_PROJECTS = ROOT / ".stack" / "node"
INSTALL_TIMEOUT = 300


def installed_project(source: Path) -> Path:
    """Copy the project and install what its lock file names. Returns the directory of the copy."""
    digest = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()[:16]
    directory = INSTALLED_PROJECTS / f"{source.name}-{digest}"
    directory.mkdir(parents=True, exist_ok=True)
    with (INSTALLED_PROJECTS / "installing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for file in source.iterdir():
            # What is there already may be in use by another run.
            if file.is_file() and not _same(file, directory / file.name):
                shutil.copy(file, directory)
        if not (directory / "installed").exists():
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = subprocess.run(
                command, cwd=directory, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
            (directory / "installed").touch()
    return directory


def compiled(source: Path) -> Path:
    """Compile a TypeScript file of an installed project, if it has changed. Returns the file in JavaScript."""
    result = source.with_suffix(".js")
    with (INSTALLED_PROJECTS / "installing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.exists() or result.stat().st_mtime < source.stat().st_mtime:
            command = [source.parent / "node_modules/.bin/tsc"]
            done = subprocess.run(
                command, cwd=source.parent, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
    return result


def _same(one: Path, other: Path) -> bool:
    return other.exists() and one.read_bytes() == other.read_bytes()
