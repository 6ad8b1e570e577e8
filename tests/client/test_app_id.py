"""The application's name in its commands."""

from pathlib import Path

from tests.support.client_program import Installed

SCRIPT = Path(__file__).parent / "scripts" / "names.py"


async def test_a_program_has_a_name_and_a_name_fits_into_an_amqp_property(python: Path, tmp_path: Path) -> None:
    async with Installed(python, {}, tmp_path).running(SCRIPT) as program:
        await program.process.wait()
    assert program.lines == [
        '["worker", "shop", "uvicorn", null, null, 127, null]',
        "app_id: has 0 bytes; 1 to 255 are possible",
        "app_id: has 256 bytes; 1 to 255 are possible",
    ]
