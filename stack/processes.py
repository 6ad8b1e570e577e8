"""Starts child processes that do not outlive this process, however it ends.

There are three mechanisms, each for what the one before misses. The child asks the kernel to be signalled when its
parent dies. It leads a session of its own, so that stopping it reaches its whole group. And it is on record (process
id, start time, boot) and marked in its environment, which descendants inherit: after a `kill -9` the next run reads the
records and ends what is left. Only a process that a record proves is ended: a bare process id or a name proves nothing.
"""

import ctypes
import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stack.errors import StackError

MARK = "DUEBELL_STACK_CHILD"
PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.02
KILL_SECONDS = 20.0

_libc = ctypes.CDLL(None, use_errno=True)

# The kernel's "parent" is the thread that forked, and its death is what the child is told of. All children are
# therefore started by one thread that lives as long as the process; a caller's own thread may come and go.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="stack-spawner")


@dataclass(frozen=True)
class Account:
    """The user that a child runs as, if not the user of this process."""

    uid: int
    gid: int


class Child:
    """A running child process and its record."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], record: Path) -> None:
        self.name = name
        self.pid = popen.pid
        self._popen = popen
        self._record = record

    def alive(self) -> bool:
        """Tell whether the process still runs. This does not reap it, so that its id cannot pass to another process
        before `stop`.
        """
        if self._popen.returncode is not None:
            return False
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:  # another thread has just reaped it
            return False

    def wait(self, seconds: float) -> bool:
        """Tell whether the process ended by itself within so many seconds."""
        return wait_until(lambda: not self.alive(), seconds)

    def send(self, number: signal.Signals) -> None:
        if self._popen.returncode is None:
            os.kill(self.pid, number)

    def freeze(self) -> None:
        """Stop the process with SIGSTOP. Returns when all of its threads stand still, which takes a moment."""
        self.send(signal.SIGSTOP)
        wait_until_frozen(self.pid)

    def stop(self, first: signal.Signals = signal.SIGTERM, grace_seconds: float = 10) -> int:
        """Ask the process to end, wait for the grace time, then kill it and the rest of its group. Returns its exit
        code.
        """
        if self._popen.returncode is None:
            self.send(first)
            self.send(signal.SIGCONT)  # a paused process would not notice that it was asked
            if not self.wait(grace_seconds):
                self.send(signal.SIGKILL)
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._popen.wait(KILL_SECONDS)
        self._record.unlink(missing_ok=True)
        return self._popen.returncode


def spawn(  # noqa: PLR0913  (each says something about the child that cannot be guessed)
    name: str,
    command: Sequence[str | Path],
    *,
    records: Path,
    log: Path,
    env: Mapping[str, str],
    cwd: Path,
    account: Account | None = None,
    when_orphaned: signal.Signals = signal.SIGKILL,
) -> Child:
    """Start a child with its output in `log` and its record in `records`."""
    argv = [str(part) for part in command]
    mark = f"{records}/{name}#{uuid.uuid4().hex}"
    parent = os.getpid()

    def before_exec() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, int(when_orphaned), 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the line above: no signal would come any more
            os._exit(1)

    def start() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**env, MARK: mark},
                cwd=cwd,
                start_new_session=True,
                preexec_fn=before_exec,  # noqa: PLW1509  (runs two system calls, and only the child can)
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
            )

    popen = _spawner.submit(start).result()
    records.mkdir(parents=True, exist_ok=True)
    record = records / f"{name}.json"
    proof = {
        "pid": popen.pid,
        "started": start_time(popen.pid),
        "boot": boot_id(),
        "mark": mark,
        "when_orphaned": int(when_orphaned),
        "command": argv,
    }
    record.write_text(json.dumps(proof))
    return Child(name, popen, record)


def end_leftovers(records: Path, seconds: float = 10) -> list[str]:
    """End the processes that a killed run left, as far as its records prove them. Returns their commands."""
    files = sorted(records.glob("*.json"))
    proofs = [proof for proof in map(_read_proof, files) if proof and proof["boot"] == boot_id()]
    ended = []
    for proof in proofs:
        if start_time(proof["pid"]) == proof["started"]:
            _signal_quietly(proof["pid"], proof["when_orphaned"])
            _signal_quietly(proof["pid"], signal.SIGCONT)
            ended.append(" ".join(proof["command"]))
    roots = [(proof["pid"], proof["started"]) for proof in proofs]
    marks = [f"{MARK}={proof['mark']}".encode() for proof in proofs]
    wait_until(lambda: not any(_lives(*root) for root in roots), seconds / 2)
    for pid in (*(pid for pid, started in roots if _lives(pid, started)), *_marked(marks)):
        _signal_quietly(pid, signal.SIGKILL)
    if not wait_until(lambda: not any(_lives(*root) for root in roots) and not any(_marked(marks)), seconds / 2):
        raise StackError(f"processes of an earlier run do not end; their records are in {records}")
    for file in files:
        file.unlink(missing_ok=True)
    return ended


def wait_until(true: Callable[[], bool], seconds: float) -> bool:
    """Wait until the condition is true. Return False if it is not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def wait_until_frozen(pid: int, seconds: float = 60) -> None:
    """Wait until every thread of a process that got SIGSTOP stands still. On a busy machine some run on for a while."""
    if not wait_until(lambda: _thread_states(pid) <= {"T"}, seconds):
        raise TimeoutError(f"process {pid} still runs {seconds:.0f} s after SIGSTOP")


def _thread_states(pid: int) -> set[str]:
    states = set()
    for thread in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            states.add(thread.read_text().rpartition(")")[2].split()[0])
    return states


def start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if it is gone or only waits to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name stands in brackets and may itself contain spaces and brackets.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else int(fields[18])


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _lives(pid: int, started: int | None) -> bool:
    return started is not None and start_time(pid) == started


def _marked(marks: Iterable[bytes]) -> Iterator[int]:
    """Yield the id of every process that carries one of these marks in its environment."""
    wanted = set(marks)
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        with suppress(OSError):  # gone meanwhile, or another user's
            if wanted.intersection((directory / "environ").read_bytes().split(b"\0")):
                yield int(directory.name)


def _signal_quietly(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _read_proof(record: Path) -> dict[str, Any] | None:
    """Return the content of a record, or None if the run was killed while it wrote the record."""
    try:
        proof: dict[str, Any] = json.loads(record.read_text())
    except ValueError:
        return None
    return proof
