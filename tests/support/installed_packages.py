"""Virtual environments in which the client is installed as an application would install it: its wheel and what its lock
file names, nothing of the services. They are kept under `.stack/`, by the hash of the lock, so that only the first run
has to fetch anything; the wheel is built and installed anew when the client has changed, and not under the feet of
another run.
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
    with _alone():
        python = _environment(lock)
        installed, wanted = python.parents[1] / "client", _digest(*_sources())
        if not installed.exists() or installed.read_text() != wanted:
            _install_client(python)
            installed.write_text(wanted)
        return python


def _install_client(python: Path) -> None:
    builder = _environment("requirements-build.lock")
    with tempfile.TemporaryDirectory() as directory:
        _run(builder, "-m", "hatchling", "build", "--target", "wheel", "--directory", directory, cwd=CLIENT)
        [wheel] = Path(directory).glob("*.whl")
        _pip(python, "--no-deps", "--force-reinstall", str(wheel))


def _sources() -> list[Path]:
    return [CLIENT / "pyproject.toml", CLIENT / "README.md", *sorted(CLIENT.glob("duebell/*.py"))]


def _digest(*files: Path) -> str:
    parts = [hashlib.sha256(file.read_bytes()).hexdigest() + file.name for file in files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _environment(lock: str) -> Path:
    directory = KEPT / f"{lock.removesuffix('.lock')}-{_digest(CLIENT / lock)}"
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
