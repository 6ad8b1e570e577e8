"""Virtual environments in which the client is installed as an application would install it: its wheel and what its lock
file names, nothing of the services. They are kept under `.stack/`, by the hash of the lock, so that only the first run
has to fetch anything; the wheel is built anew each time.
"""

import fcntl
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.services import ROOT

CLIENT = ROOT / "client"
KEPT = ROOT / ".stack" / "client"
INSTALL_TIMEOUT = 300
OURS = Path(sys.executable)


def client_python(lock: str = "requirements.lock") -> Path:
    """The interpreter of an environment with the client as it is now, and what that lock names."""
    with _alone(), tempfile.TemporaryDirectory() as directory:
        builder, python = _environment("requirements-build.lock"), _environment(lock)
        _run(builder, "-m", "hatchling", "build", "--target", "wheel", "--directory", directory, cwd=CLIENT)
        [wheel] = Path(directory).glob("*.whl")
        _pip(python, "--no-deps", "--force-reinstall", str(wheel))
        return python


def _environment(lock: str) -> Path:
    content = (CLIENT / lock).read_bytes()
    directory = KEPT / f"{lock.removesuffix('.lock')}-{hashlib.sha256(content).hexdigest()[:16]}"
    python, done = directory / "bin" / "python", directory / "installed"
    if not done.exists():
        _run(OURS, "-m", "venv", "--clear", "--without-pip", str(directory))
        _pip(python, "--require-hashes", "--requirement", str(CLIENT / lock))
        done.touch()
    return python


def _pip(python: Path, *arguments: str) -> None:
    _run(OURS, "-m", "pip", "--python", str(python), "install", "-qq", "--disable-pip-version-check", *arguments)


def _run(python: Path, *arguments: str, cwd: Path = ROOT) -> None:
    done = subprocess.run(
        [python, *arguments], cwd=cwd, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def _alone() -> Iterator[None]:
    """Two test runs at once must not both install."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / "installing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
