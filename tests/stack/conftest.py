"""What the stack's own tests share."""

from pathlib import Path

import pytest


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A path with a space in it, as a home directory may well have."""
    return tmp_path / "a stack"
