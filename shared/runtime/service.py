"""Start and stop. The first SIGTERM or SIGINT asks the work to take no more and finish what is in flight; when the
grace time is over, or at a second signal, what is left is abandoned. Work that dies takes the process with it.
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

from shared.amqp.wire import find_untested_version
from shared.errors import CannotStart
from shared.runtime.logs import get_log
from shared.runtime.loops import Stop, first_of, run_until_stop

# How long what is left of a dying process may take to clear up after itself.
CLEANUP_SECONDS = 10.0

# How many new objects there may be before the youngest are looked through for cycles: those of a few batches.
GARBAGE_THRESHOLD = 50_000


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Something does not let go of the process, which has to be left by force."""

    error: Exception | None = None


def run_service(work: Callable[[Stop], Coroutine[Any, Any, None]], grace_seconds: float) -> int:
    """The exit status: 0 after an orderly stop, 1 if the work died, did not finish in time or cannot start."""
    if problem := find_untested_version():
        return _log_error(CannotStart(problem))
    _collect_garbage_seldom()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        ending = runner.run(_run(work, grace_seconds))
        if isinstance(ending, Abandoned):
            if ending.error is not None:
                _log_error(ending.error)
            os._exit(1)  # the loop would wait for what is left, and that may be for ever
    # Only here is nothing left that could say something after it.
    return ending if isinstance(ending, int) else _log_error(ending)


def _collect_garbage_seldom() -> None:
    """Batches make thousands of objects at a time, and hardly a cycle among them: by its defaults Python would look for
    cycles at every seventh hundred, through everything there is again and again, for a third of the service's time.
    """
    gc.freeze()  # what was imported stays for good
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 50)


def _log_error(error: BaseException) -> int:
    reasons = _reasons(error)
    if isinstance(reasons[0], CannotStart):
        get_log().error("cannot_start", problem=str(reasons[0]))
    else:
        get_log().error("died", error="; ".join(dict.fromkeys(map(_describe, reasons))), exc_info=error)
    # What is cleared away from here on (a connection that was just being made, say) has nothing to add.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    return 1


def _reasons(error: BaseException) -> list[BaseException]:
    """What went wrong, without the task groups that it went through; but with the loop that it went through first."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            for name in getattr(error, "__notes__", ()):
                inner.add_note(name)
        return [reason for inner in error.exceptions for reason in _reasons(inner)]
    return [error]


def _describe(reason: BaseException) -> str:
    loop = getattr(reason, "__notes__", ["the service"])[0]  # see shared.runtime.loops
    return " ".join(f"{loop}: {type(reason).__name__}: {reason}".split())


async def _run(
    work: Callable[[Stop], Coroutine[Any, Any, None]], grace_seconds: float
) -> int | BaseException | Abandoned:
    log, stop, hurry = get_log(), Stop(), asyncio.Event()

    def on_signal() -> None:
        if stop.requested:
            hurry.set()
        else:
            log.info("stopping", grace_seconds=grace_seconds)
            stop.request()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)

    worker = asyncio.create_task(run_until_stop(work(stop), stop, "the service"), name="work")
    await first_of(asyncio.wait({worker}), stop.wait(), stop.wait_for_failure())
    if stop.failure is None and not worker.done():
        await first_of(asyncio.wait({worker}), stop.wait_for_failure(), asyncio.sleep(grace_seconds), hurry.wait())
    if stop.failure is not None:
        await asyncio.wait({worker}, timeout=CLEANUP_SECONDS)
        if not worker.done():
            return Abandoned(stop.failure)
    if not worker.done():
        log.warning("abandoned", reason="second signal" if hurry.is_set() else "grace time over")
        worker.cancel()
        await asyncio.wait({worker}, timeout=5.0)
        return 1 if worker.done() else Abandoned()
    if error := worker.exception():
        return error
    log.info("stopped")
    return 0
