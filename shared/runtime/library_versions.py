"""Checks that the libraries whose details the services rely on have versions that were tested. The services use public
names only. But incoming frames pass aiormq's reader by, outgoing frames its publishing, aio-pika hands the transport
factory on, and the guard of webhook calls is called by aiohttp, with addresses that yarl has read.
"""

from collections.abc import Callable
from importlib.metadata import version

# From the first version, below the second, as in pyproject.toml.
TESTED_VERSIONS = {
    "aio-pika": ("10.2", "11"),
    "aiohttp": ("3.14", "4"),
    "aiormq": ("7.2.4", "7.3"),
    "pamqp": ("4.0.1", "4.1"),
    "yarl": ("1.25", "2"),
}


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
