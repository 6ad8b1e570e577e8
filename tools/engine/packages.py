"""Debian's packages with all that they depend on, of any release, unpacked into a directory. Nothing is installed."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from stack.errors import StackError
from tools.platforms.system import mirror

FETCH_SECONDS = 900.0
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Since they were merged, packages leave these links to base-files.
LINKS = ("bin", "sbin", "lib", "lib64")


def unpack(names: Sequence[str], release: str, root: Path, log: Path) -> None:
    """Fetch the packages and unpack them into `root`, which appears only when it is complete."""
    apt, unfinished = root.with_name("apt"), root.with_name(f"{root.name}.unfinished")
    for directory in (apt, unfinished):
        shutil.rmtree(directory, ignore_errors=True)
    _fetch(names, release, apt, log)
    for link in LINKS:
        (unfinished / "usr" / link).mkdir(parents=True)
        (unfinished / link).symlink_to(f"usr/{link}")
    for archive in sorted((apt / "cache/archives").glob("*.deb")):
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as content:
            options = ("--extract", "--directory", unfinished, "--keep-directory-symlink")
            _run(["tar", *options], log, stdin=content.stdout)
    shutil.rmtree(apt)
    unfinished.rename(root)


def _fetch(names: Sequence[str], release: str, apt: Path, log: Path) -> None:
    """Let apt find and fetch them in a state of its own, in which no package is installed."""
    for directory in ("state/lists/partial", "cache/archives/partial"):
        (apt / directory).mkdir(parents=True)
    (apt / "status").touch()
    (apt / "sources.list").write_text(f"deb [signed-by={KEYRING}] {mirror()} {release} main\n")
    settings = {
        "Dir::Etc::SourceList": apt / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State": apt / "state",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "false",
        "Acquire::Check-Valid-Until": "false",  # a mirror may be a stored copy
        "Acquire::Languages": "none",
    }
    options = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
    _run(["apt-get", *options, "update"], log)
    _run(["apt-get", *options, "--yes", "--download-only", "install", *names], log)


def _run(command: Sequence[str | Path], log: Path, stdin: IO[bytes] | None = None) -> None:
    with log.open("ab") as output:
        done = subprocess.run(command, stdin=stdin, stdout=output, stderr=output, check=False, timeout=FETCH_SECONDS)
    if done.returncode != 0:
        raise StackError(f"{command[0]} could not fetch or unpack Debian's packages; {log} tells why")
