"""Virtual environments that hold one of the project's two packages, the client or the server, as a user installs it:
its wheel and what its lock file names. They are kept under `.stack/`, by the hash of the lock, so that only the first
run fetches anything. The wheel is built and installed again when the package has changed. A file lock keeps two test
runs apart.
"""

import fcntl
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.services import ROOT

CLIENT = ROOT / "client"
ENVIRONMENTS = ROOT / ".stack" / "packages"
BUILD_LOCK = CLIENT / "requirements-build.lock"
INSTALL_TIMEOUT = 300
THIS_PYTHON = Path(sys.executable)


@dataclass(frozen=True, slots=True)
class Package:
    """A directory with a pyproject.toml, and the files under it from which its wheel is built."""

    name: str
    directory: Path
    patterns: tuple[str, ...]

    def sources(self) -> list[Path]:
        found = (path for pattern in self.patterns for path in self.directory.glob(pattern))
        return sorted(path for path in found if path.is_file() and "__pycache__" not in path.parts)


METADATA = ("pyproject.toml", "README.md", "LICENSE")
CLIENT_PACKAGE = Package("client", CLIENT, (*METADATA, "duebell/**/*"))
SERVER_PACKAGE = Package(
    "server",
    ROOT,
    (*METADATA, *(f"{name}/**/*" for name in ("cli", "console", "consumer", "delivery", "producer", "shared"))),
)


def client_python(lock: str = "requirements.lock") -> Path:
    """Return the interpreter of an environment with the client's wheel and what that lock names."""
    return _python_with(CLIENT_PACKAGE, CLIENT / lock)


def server_python() -> Path:
    """Return the interpreter of an environment with the server's wheel and what a release installs."""
    return _python_with(SERVER_PACKAGE, ROOT / "requirements.lock")


def python_of(lock: Path) -> Path:
    """Return the interpreter of an environment with what that lock names, and nothing else."""
    with _one_run_at_a_time():
        return _environment("lock", lock)


def build_wheel(package: Package, directory: Path) -> Path:
    """Build the package's wheel into the directory."""
    with _one_run_at_a_time():
        return _build_wheel(package, directory)


def _python_with(package: Package, lock: Path) -> Path:
    with _one_run_at_a_time():
        python = _environment(package.name, lock)
        installed, wanted = python.parents[1] / "package", _digest(*package.sources())
        if not installed.exists() or installed.read_text() != wanted:
            with tempfile.TemporaryDirectory() as directory:
                wheel = _build_wheel(package, Path(directory))
                _pip(python, "--no-deps", "--force-reinstall", str(wheel))
            installed.write_text(wanted)
        return python


def _build_wheel(package: Package, directory: Path) -> Path:
    builder = _environment("build", BUILD_LOCK)
    _run(builder, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory), cwd=package.directory)
    [wheel] = directory.glob("*.whl")
    return wheel


def _digest(*files: Path) -> str:
    parts = [hashlib.sha256(file.read_bytes()).hexdigest() + str(file.relative_to(ROOT)) for file in files]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _environment(name: str, lock: Path) -> Path:
    directory = ENVIRONMENTS / f"{name}-{lock.stem}-{_digest(lock)}"
    python, done = directory / "bin" / "python", directory / "installed"
    if not done.exists():
        _run(THIS_PYTHON, "-m", "venv", "--clear", "--without-pip", str(directory))
        _pip(python, "--require-hashes", "--requirement", str(lock))
        done.touch()
    return python


def _pip(python: Path, *arguments: str) -> None:
    _run(THIS_PYTHON, "-m", "pip", "--python", str(python), "install", "-qq", "--disable-pip-version-check", *arguments)


def _run(python: Path, *arguments: str, cwd: Path = ROOT) -> None:
    done = subprocess.run(
        [python, *arguments], cwd=cwd, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def _one_run_at_a_time() -> Iterator[None]:
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with (ENVIRONMENTS / "installing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
