"""The same commands without async, for scripts: `with duebell.sync.Scheduler(url) as duebell: duebell.schedule(…)`.

A thread with an event loop of its own does the work; any thread may call. To listen, use `duebell.Scheduler`.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from duebell.commands import DEFAULT_TIMEOUT, Commands

P = ParamSpec("P")
T = TypeVar("T")

JOIN_TIMEOUT = 10.0


def _blocking(
    method: Callable[Concatenate[Commands, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Scheduler", P], T]:
    def call(scheduler: "Scheduler", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return scheduler._run(method(scheduler._commands, *args, **kwargs))  # noqa: SLF001 - of the same module

    call.__doc__ = method.__doc__
    return call


class Scheduler:
    """Arguments as those of `duebell.Scheduler`."""

    def __init__(
        self,
        url: str,
        prefix: str = "",
        *,
        owner: bool = False,
        app_id: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self._commands = Commands(url, prefix, owner=owner, app_id=app_id, timeout=timeout)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="duebell", daemon=True)
        self._thread.start()
        try:
            self._run(self._commands.__aenter__())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        try:
            self._run(self._commands.__aexit__(None, None, None))
        finally:
            self._end()

    schedule = _blocking(Commands.schedule)
    reschedule = _blocking(Commands.reschedule)
    cancel = _blocking(Commands.cancel)
    pause = _blocking(Commands.pause)
    resume = _blocking(Commands.resume)
    trigger = _blocking(Commands.trigger)
    status = _blocking(Commands.status)
    bulk = _blocking(Commands.bulk)
    bulk_status = _blocking(Commands.bulk_status)
    schedule_many = _blocking(Commands.schedule_many)
    send = _blocking(Commands.send)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            work.close()
            raise RuntimeError("use it as `with Scheduler(…) as duebell:`")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()  # its deadline is the work's own
        except BaseException:
            future.cancel()  # Ctrl-C in the caller must not leave it going
            raise

    def _end(self) -> None:
        if self._loop is None or self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(JOIN_TIMEOUT)
        if not self._thread.is_alive():
            self._loop.close()
        self._loop = self._thread = None
