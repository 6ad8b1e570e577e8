"""A Debian of any release in a directory: made once by debootstrap, and used through a layer that takes the changes.

Everything runs in mount and process namespaces of its own. The kernel ends its processes and undoes its mounts when the
first process of the namespaces ends, and that one ends with this process, however this one ends.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from stack import processes
from stack.directory import STACK
from stack.errors import StackError, StartError

CACHE = STACK / "debian"  # keeps the bases, and what apt and pip have fetched
ENTER = Path(__file__).parent / "enter.sh"
# What a reader of the README has before the first command.
BASE_PACKAGES = "ca-certificates,git,make,procps,python3"
SYSTEM_NAMESPACES = ("unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child")
# How this machine reaches its package registries.
PASSED_ON = (
    "PIP_CERT",
    "PIP_INDEX_URL",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STEP_SECONDS = 3 * 3600.0
BASE_SECONDS = 1800.0
TOLD_EVERY_SECONDS = 20.0

Tell = Callable[[str], None]


def mirror() -> str:
    """Return where this machine's own apt gets Debian's packages from; MIRROR may say it."""
    if given := os.environ.get("MIRROR"):
        return given
    command = ("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian")
    lines = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout.split()
    if not lines:
        raise StackError(
            "Where Debian's packages come from is not known.\n  what to do: MIRROR=http://… make platforms"
        )
    return lines[0]


class System:
    """One release of Debian. `directory` takes its changes, its records and its logs."""

    def __init__(self, release: str, directory: Path, tell: Tell) -> None:
        self.release = release
        self.base = CACHE / release
        self.layer = directory / release
        self.logs = directory / "logs"
        self.records = directory / "children"
        self._tell = tell

    def make_base(self) -> None:
        """Make the base, unless it is there from an earlier run."""
        self.logs.mkdir(parents=True, exist_ok=True)
        if not self.base.exists():
            self._bootstrap()

    def put(self, files: Sequence[Path], source: Path) -> None:
        """Put the files of the project into the layer."""
        project = self.layer / "changes" / "duebell"
        for file in files:
            (project / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / file, project / file)

    def run(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, Path]:
        """Run a command in the directory of the project. Returns its status, and the log with what it printed."""
        enter = ["sh", str(ENTER), str(self.base), str(self.layer), str(CACHE), *command]
        log = self._log(name)
        return self._spawn(name, enter, environment, log, STEP_SECONDS), log

    def read(self, command: Sequence[str]) -> str:
        """Return what a short command prints; nothing if it fails."""
        status, log = self.run("versions", command, {})
        return log.read_text().strip() if status == 0 else ""

    def _bootstrap(self) -> None:
        unfinished = CACHE / f"{self.release}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        packages = CACHE / "apt" / self.release
        packages.mkdir(parents=True, exist_ok=True)
        self._tell(f"debootstrap of {self.release}, once …")
        options = ("--variant=minbase", f"--include={BASE_PACKAGES}", f"--cache-dir={packages}")
        # The script of all releases since 2003; debootstrap may be older than the release.
        script = "/usr/share/debootstrap/scripts/sid"
        command = ["debootstrap", *options, self.release, str(unfinished), mirror(), script]
        log = self._log("debootstrap")
        if self._spawn("debootstrap", command, {}, log, BASE_SECONDS) != 0:
            raise StartError(
                f"{self.release} could not be made.", log=log, next_step="read the log; is the mirror reachable?"
            )
        unfinished.rename(self.base)

    def _log(self, name: str) -> Path:
        log = self.logs / f"{self.release}-{name.replace(' ', '-')}.log"
        log.unlink(missing_ok=True)
        return log

    def _spawn(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path, seconds: float
    ) -> int:
        passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        own = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", "TERM": "dumb", "PYTHONUNBUFFERED": "1"}
        child = processes.spawn(
            self.release,
            [*SYSTEM_NAMESPACES, *command],
            records=self.records,
            log=log,
            env={**own, **passed, **environment},
            cwd=Path("/"),
        )
        try:
            self._watch(child, name, log, seconds)
            return child.stop() if not child.alive() else 124
        finally:
            # unshare waits for its child whatever it is asked: only its death ends the namespaces.
            processes.end_leftovers(self.records)
            child.stop()

    def _watch(self, child: processes.Child, name: str, log: Path, seconds: float) -> None:
        began = time.monotonic()
        while not child.wait(TOLD_EVERY_SECONDS) and time.monotonic() - began < seconds:
            minutes = (time.monotonic() - began) / 60
            self._tell(f"{self.release}: {name}, {minutes:.1f} min: {_last_line(log)}")


def _last_line(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 400))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:100]
