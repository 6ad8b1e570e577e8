"""The versions of the AMQP libraries that the wire was tested with. Their public parts are used alone, but closely:
frames go past aiormq on their way in and around its publishing on their way out.
"""

from collections.abc import Callable
from importlib.metadata import version

# From the first, up to the second and without it: as in pyproject.toml.
TESTED_VERSIONS = {"aiormq": ("7.2.4", "7.3"), "pamqp": ("4.0.1", "4.1")}


def find_untested_version(installed: Callable[[str], str] = version) -> str | None:
    """Returns the problem in one line, or None."""
    for library, (first, end) in TESTED_VERSIONS.items():
        found = installed(library)
        if not _numbers(first) <= _numbers(found) < _numbers(end):
            return f"{library} {found} is installed, and Duebell was tested with {library}>={first},<{end}: install one"
    return None


def _numbers(text: str) -> tuple[int, ...]:
    """Of 7.3.0rc1 the 7 and the 3: a version that is not released yet counts as its beginning."""
    numbers: list[int] = []
    for part in text.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)
