"""`make demo` shows what README.md shows."""

import re
import subprocess
import sys

from tests.documents.blocks import blocks_of
from tests.support.services import ROOT


def test_the_demo_shows_what_the_readme_shows() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stack.demo"], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [picture] = [block.text for block in blocks_of("README.md") if "seen in" in block.text]
    shown = without_numbers(done.stdout)
    for line in picture.splitlines():
        assert without_numbers(line) in shown or line.strip() == "…", line


def without_numbers(text: str) -> str:
    """Times and keys differ from run to run."""
    bare = re.sub(r"event-[0-9a-f]+…?", "event-", text)
    return re.sub(r"[ \t]+", " ", re.sub(r"\d+(?:[.:]\d+)*", "0", bare)).strip()
