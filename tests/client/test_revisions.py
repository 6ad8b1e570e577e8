"""Revisions from the clock."""

from pathlib import Path

from tests.support.client_program import Installed

SCRIPT = Path(__file__).parent / "scripts" / "clock.py"


async def test_revisions_rise_even_if_the_clock_stands_still_or_is_put_back(python: Path, tmp_path: Path) -> None:
    async with Installed(python, {}, tmp_path).running(SCRIPT) as program:
        await program.process.wait()
    assert program.lines == ["[5000, 5001, 9000, 9001, 10000]", "4000"]
