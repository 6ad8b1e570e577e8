"""A database has the migrations that its release applied: a released file that changes would never be applied again."""

from pathlib import Path

from tests.support.services import ROOT
from tests.upgrade.release import NEWEST_MIGRATION, unpack


def test_the_migrations_of_0_1_0_are_as_they_were_released(tmp_path: Path) -> None:
    released = sorted((unpack(tmp_path) / "shared" / "migrations").glob("*.sql"))
    present = ROOT / "shared" / "postgres" / "migrations"

    assert len(released) == NEWEST_MIGRATION
    assert [file.name for file in released if file.read_bytes() != (present / file.name).read_bytes()] == []
