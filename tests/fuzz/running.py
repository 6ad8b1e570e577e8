"""Runs a target under atheris, seeded from the hostile corpus: `python -m tests.fuzz.<target> -max_total_time=60`, or
any other option of libFuzzer. It ends at the first exception that the target lets through, with a stack trace, and
keeps the input. Inputs that reached new code are kept too, and the next run goes on from there.
"""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import atheris

MAX_INPUT_BYTES = 4096
# Seconds for a single input: far beyond what any takes, far below a hang.
TIMEOUT = 20


def fuzz(name: str, check: Callable[[bytes], None], seeds: Iterable[bytes]) -> None:
    """Does not return: libFuzzer ends the process."""
    directory = Path(os.environ.get("FUZZ_DIRECTORY") or Path(__file__).parents[2] / ".stack" / "fuzz" / name)
    directory.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        if len(seed) <= MAX_INPUT_BYTES:
            (directory / f"seed-{number:05}").write_bytes(seed)
    options = [
        f"-max_len={MAX_INPUT_BYTES}",
        f"-timeout={TIMEOUT}",
        f"-artifact_prefix={directory.parent}/found-{name}-",
    ]
    atheris.Setup([sys.argv[0], *options, *sys.argv[1:], str(directory)], check)
    atheris.Fuzz()
