"""Checks that the AMQP libraries have versions that the wire package was tested with. The package uses their public
names only, but depends on details: incoming frames pass aiormq's reader by, outgoing frames its publishing.
"""

from collections.abc import Callable
from importlib.metadata import version

# From the first version, below the second, as in pyproject.toml.
TESTED_VERSIONS = {"aiormq": ("7.2.4", "7.3"), "pamqp": ("4.0.1", "4.1")}


def find_untested_version(installed: Callable[[str], str] = version) -> str | None:
    """Return one line about a library in an untested version, or None."""
    for library, (first, end) in TESTED_VERSIONS.items():
        found = installed(library)
        if not _numbers(first) <= _numbers(found) < _numbers(end):
            return f"{library} {found} is installed, and Duebell was tested with {library}>={first},<{end}: install one"
    return None


def _numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: (7, 3) for 7.3.0rc1, so that a pre-release counts as its release."""
    numbers: list[int] = []
    for part in text.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)
