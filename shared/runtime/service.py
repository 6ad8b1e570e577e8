"""Start and stop of a service. At the first SIGTERM or SIGINT the loops take no more work and finish what is in flight.
When the grace time is over, or at a second signal, the service cancels the rest. A loop that dies ends the process.
"""

import asyncio
import gc
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import uvloop

from shared.errors import CannotStart
from shared.runtime.library_versions import find_untested_version
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, first_of, run_until_stop

# After a loop has died, the others have this long to clean up.
CLEANUP_SECONDS = 10.0

# Python looks for cycles among the youngest objects when there are this many new ones: those of a few batches.
GARBAGE_THRESHOLD = 50_000


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The work did not end in time, although it was cancelled: the process has to exit without waiting for it."""

    error: Exception | None = None


def run_service(work: Callable[[Stop], Coroutine[Any, Any, None]], grace_seconds: float) -> int:
    """Run the service until its stop. Return the exit status: 0 after an orderly stop, 1 if the work died, did not
    finish in time or could not start.
    """
    if problem := find_untested_version():
        return _log_error(CannotStart(problem))
    _collect_garbage_seldom()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        ending = runner.run(_run(work, grace_seconds))
        if isinstance(ending, Abandoned):
            if ending.error is not None:
                _log_error(ending.error)
            os._exit(1)  # the runner would wait for the remaining tasks without a limit
    # After the runner: no other line may follow the one about the end of the process.
    return ending if isinstance(ending, int) else _log_error(ending)


def _collect_garbage_seldom() -> None:
    """Have Python look for cycles among objects less often. A batch makes thousands of objects and hardly a cycle. By
    default Python looks after every 700 new objects, again and again through all objects: that took a third of a
    service's time.
    """
    gc.freeze()  # imported modules stay for good
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 50)


def _log_error(error: BaseException) -> int:
    """Log why the process ends, as its last line. Return the exit status."""
    reasons = _reasons(error)
    if isinstance(reasons[0], CannotStart):
        get_log().error("cannot_start", problem=str(reasons[0]))
    else:
        get_log().error("died", error="; ".join(dict.fromkeys(map(_describe, reasons))), exc_info=error)
    # asyncio may still complain about what the exit destroys, such as a connection that was being opened.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    return 1


def _reasons(error: BaseException) -> list[BaseException]:
    """Return the errors inside nested exception groups. Each keeps the note that names its loop: see Watchdog."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            for name in getattr(error, "__notes__", ()):
                inner.add_note(name)
        return [reason for inner in error.exceptions for reason in _reasons(inner)]
    return [error]


def _describe(reason: BaseException) -> str:
    loop = getattr(reason, "__notes__", ["the service"])[0]  # the innermost loop: its note was added first
    return " ".join(f"{loop}: {type(reason).__name__}: {reason}".split())


async def _run(
    work: Callable[[Stop], Coroutine[Any, Any, None]], grace_seconds: float
) -> int | BaseException | Abandoned:
    log, stop, second_signal = get_log(), Stop(), asyncio.Event()

    def on_signal() -> None:
        if stop.requested:
            second_signal.set()
        else:
            log.info("stopping", grace_seconds=grace_seconds)
            stop.request()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)

    worker = asyncio.create_task(run_until_stop(work(stop), stop, "the service"), name="work")
    await first_of(asyncio.wait({worker}), stop.wait(), stop.wait_for_failure())
    if not worker.done() and stop.failure is None:  # stopped in an orderly way: the grace time begins
        grace = asyncio.sleep(grace_seconds)
        await first_of(asyncio.wait({worker}), stop.wait_for_failure(), grace, second_signal.wait())
    if stop.failure is not None:  # a loop died: its task group cancels the others
        await asyncio.wait({worker}, timeout=CLEANUP_SECONDS)
        if not worker.done():
            return Abandoned(stop.failure)
    if not worker.done():
        log.warning("abandoned", reason="second signal" if second_signal.is_set() else "grace time over")
        worker.cancel()
        await asyncio.wait({worker}, timeout=5.0)
        return 1 if worker.done() else Abandoned()
    if error := worker.exception():
        return error
    log.info("stopped")
    return 0
