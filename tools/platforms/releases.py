"""Which releases of Debian there are to run on, and what is run there. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# The oldest PgBouncer that keeps the prepared statements of its clients apart.
POOLER_SINCE = (1, 21)
BEHIND_THE_POOLER = ("tests/integration", "tests/acceptance/test_pooler.py")


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Debian."""

    name: str
    title: str
    postgres: int | None = None  # the major version of Debian's that the tests use; None: the one of the wheel
    pooler_of: str | None = None  # the release whose PgBouncer is used, because that of this release is too old


RELEASES = (
    Release("bookworm", "Debian 12", pooler_of="trixie"),
    Release("trixie", "Debian 13", postgres=17),
    Release("testing", "Debian testing", postgres=18),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A command, and the column of the table that tells how it ended."""

    column: str
    command: tuple[str, ...]
    behind_pooler: bool = False


def choose(only: Sequence[str]) -> list[Release]:
    """Return the releases with these names; all without a name. Raises ValueError for a name that there is not."""
    known = {release.name: release for release in RELEASES}
    if unknown := [name for name in only if name not in known]:
        raise ValueError(f"ONLY: there is no {unknown[0]!r}; there are {', '.join(known)}")
    return [release for release in RELEASES if not only or release.name in only]


def steps(tests: Sequence[str], directories: Sequence[str]) -> Iterator[Step]:
    """Yield what is run on a release. `tests` are names of directories in tests/, `pooler` for the tests behind
    PgBouncer, or `none`; without a name, everything. Raises ValueError for a name that is none of these.
    """
    allowed = {*directories, "pooler", "none"}
    if unknown := [name for name in tests if name not in allowed]:
        raise ValueError(f"TESTS: there is no {unknown[0]!r}; there are {', '.join(sorted(allowed))}")
    yield Step("make demo", ("make", "demo"))
    chosen = [f"tests/{name}" for name in tests if name in directories]
    if chosen:
        yield Step("make test", ("make", "test", f"ARGS={' '.join(chosen)}"))
    elif not tests:
        yield Step("make test", ("make", "test"))
    if not tests or "pooler" in tests:
        arguments = f"ARGS={' '.join(BEHIND_THE_POOLER)}"
        yield Step("behind PgBouncer", ("make", "test", arguments), behind_pooler=True)
