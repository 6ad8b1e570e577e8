"""A reader's terminal: one shell for a page, which runs the page's commands block by block and shows what they and the
programs that they leave running print.
"""

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from tests.support.eventually import PATIENCE


class Terminal:
    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        inherited = {key: os.environ[key] for key in ("HOME", "LANG") if key in os.environ}
        self._shell = subprocess.Popen(
            ["/bin/bash", "-e"],
            cwd=directory,
            env={**inherited, "PYTHONUNBUFFERED": "1", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def run(self, commands: str) -> None:
        """Until the last of them has ended; those in the background go on."""
        mark = f"ran {uuid4().hex}"
        assert self._shell.stdin
        self._shell.stdin.write(f"{commands}\nprintf '\\n%s\\n' '{mark}'\n")
        self._shell.stdin.flush()
        self._wait(lambda: mark in self._lines, f"did not end: {commands}")
        self._lines.remove(mark)

    def shows(self, expected: str) -> None:
        """Waits until each line of `expected` was printed. … stands for anything."""
        missing = [line for line in expected.splitlines() if line.strip(" …")]

        def all_there() -> bool:
            missing[:] = [line for line in missing if not any(fits(line, shown) for shown in self._lines)]
            return not missing

        self._wait(all_there, f"was not printed: {missing}")

    def close(self) -> None:
        """Ends the shell and all that it has left running."""
        with suppress(ProcessLookupError):  # a command has failed, and the shell has ended with it
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait(PATIENCE)
        self._reader.join(PATIENCE)
        for pipe in (self._shell.stdin, self._shell.stdout):
            if pipe:
                pipe.close()

    def _read(self) -> None:
        assert self._shell.stdout
        for line in self._shell.stdout:
            self._lines.append(line.rstrip("\n"))

    def _wait(self, is_over: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_over():
            ended = self._shell.poll()
            in_time = ended is None and time.monotonic() < deadline
            assert in_time or is_over(), f"{otherwise}\nstatus of the shell: {ended}\n" + "\n".join(self._lines)
            time.sleep(0.05)


def fits(expected: str, shown: str) -> bool:
    """Tell whether a line of a document is in a printed line. … stands for anything."""
    words = [re.escape(word).replace("…", ".*") for word in expected.split()]
    return re.search(r"\s+".join(words), shown) is not None
