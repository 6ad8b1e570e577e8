"""The commands. Each returns when Duebell has answered it, or, with `wait=False`, when the broker has confirmed it. No
command returns while it may be lost.
"""

import sys
from collections.abc import AsyncIterable, Iterable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, Self, Unpack, overload
from uuid import uuid4

from duebell.address import check_url, user_of
from duebell.app_id import check_app_id, program_name
from duebell.errors import Conflict, Rejected
from duebell.link import Link
from duebell.many import send_many
from duebell.messages import (
    BulkProgress,
    Command,
    JobState,
    Outcome,
    ScheduleBulk,
    ScheduleCancel,
    SchedulePause,
    ScheduleQuery,
    ScheduleReply,
    ScheduleRequest,
    ScheduleResume,
    ScheduleTrigger,
)
from duebell.names import COMMANDS_EXCHANGE, ROUTING_KEYS
from duebell.outgoing import Outgoing
from duebell.publishing import Publisher
from duebell.requests import BulkFields, ChangeFields, RequestFields, change, checked, encoded, request

DEFAULT_TIMEOUT = 30.0


class Commands:
    """What `Scheduler` and its synchronous twin can ask for. Each command waits for the verdict and returns it. It
    raises `Rejected` if Duebell refuses the command, and `Conflict` if Duebell knows another one under the same
    revision or a higher one. With `wait=False` it returns None at the broker's confirm, and a refusal is not noticed.
    """

    def __init__(
        self,
        url: str,
        prefix: str = "",
        *,
        owner: bool = False,
        app_id: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self._url = check_url(url)
        self._app_id = program_name(sys.argv) if app_id is None else check_app_id(app_id)
        self._prefix = prefix
        self._timeout = timeout
        self._user_id = user_of(url) if owner else None
        self._stack = AsyncExitStack()
        self._publisher: Publisher | None = None

    async def __aenter__(self) -> Self:
        link = await self._stack.enter_async_context(Link(self._url, "duebell publisher", self._timeout))
        publisher = Publisher(link, self._prefix + COMMANDS_EXCHANGE)
        self._publisher = await self._stack.enter_async_context(publisher)
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._publisher = None
        await self._stack.aclose()

    @overload
    async def schedule(
        self, job_id: str, *, wait: Literal[True] = ..., timeout: float | None = ..., **fields: Unpack[RequestFields]
    ) -> ScheduleReply: ...
    @overload
    async def schedule(
        self, job_id: str, *, wait: bool, timeout: float | None = ..., **fields: Unpack[RequestFields]
    ) -> ScheduleReply | None: ...
    async def schedule(
        self, job_id: str, *, wait: bool = True, timeout: float | None = None, **fields: Unpack[RequestFields]
    ) -> ScheduleReply | None:
        """Schedule a job, replace what is scheduled under its id, or use the id of a job that has ended again. Exactly
        one of `at`, `rrule`, `cron`, `every_seconds`. Without `revision` each call replaces the one before; with the
        same `revision` the same call is a duplicate and changes nothing.
        """
        return await self.send(request(job_id, **fields), wait=wait, timeout=timeout)

    @overload
    async def reschedule(
        self, job_id: str, *, wait: Literal[True] = ..., timeout: float | None = ..., **fields: Unpack[RequestFields]
    ) -> ScheduleReply: ...
    @overload
    async def reschedule(
        self, job_id: str, *, wait: bool, timeout: float | None = ..., **fields: Unpack[RequestFields]
    ) -> ScheduleReply | None: ...
    async def reschedule(
        self, job_id: str, *, wait: bool = True, timeout: float | None = None, **fields: Unpack[RequestFields]
    ) -> ScheduleReply | None:
        """Replace the whole schedule of a job: the same as `schedule`."""
        return await self.send(request(job_id, **fields), wait=wait, timeout=timeout)

    @overload
    async def cancel(
        self, job_id: str, *, wait: Literal[True] = ..., timeout: float | None = ..., **fields: Unpack[ChangeFields]
    ) -> ScheduleReply: ...
    @overload
    async def cancel(
        self, job_id: str, *, wait: bool, timeout: float | None = ..., **fields: Unpack[ChangeFields]
    ) -> ScheduleReply | None: ...
    async def cancel(
        self, job_id: str, *, wait: bool = True, timeout: float | None = None, **fields: Unpack[ChangeFields]
    ) -> ScheduleReply | None:
        """Cancel a job: it does not ring any more. A later `schedule` uses its id again. Raises `Rejected` if the job
        has rung for the last time. For an id without a job the outcome is `unknown`.
        """
        return await self.send(change(ScheduleCancel, job_id, **fields), wait=wait, timeout=timeout)

    @overload
    async def pause(
        self, job_id: str, *, wait: Literal[True] = ..., timeout: float | None = ..., **fields: Unpack[ChangeFields]
    ) -> ScheduleReply: ...
    @overload
    async def pause(
        self, job_id: str, *, wait: bool, timeout: float | None = ..., **fields: Unpack[ChangeFields]
    ) -> ScheduleReply | None: ...
    async def pause(
        self, job_id: str, *, wait: bool = True, timeout: float | None = None, **fields: Unpack[ChangeFields]
    ) -> ScheduleReply | None:
        """Pause a job: it does not ring until it is resumed."""
        return await self.send(change(SchedulePause, job_id, **fields), wait=wait, timeout=timeout)

    @overload
    async def resume(
        self, job_id: str, *, wait: Literal[True] = ..., timeout: float | None = ..., **fields: Unpack[ChangeFields]
    ) -> ScheduleReply: ...
    @overload
    async def resume(
        self, job_id: str, *, wait: bool, timeout: float | None = ..., **fields: Unpack[ChangeFields]
    ) -> ScheduleReply | None: ...
    async def resume(
        self, job_id: str, *, wait: bool = True, timeout: float | None = None, **fields: Unpack[ChangeFields]
    ) -> ScheduleReply | None:
        """Resume a job: it rings again. Its misfire policy says what becomes of what it missed."""
        return await self.send(change(ScheduleResume, job_id, **fields), wait=wait, timeout=timeout)

    @overload
    async def trigger(
        self,
        job_id: str,
        trigger_id: str = ...,
        *,
        payload: object = ...,
        wait: Literal[True] = ...,
        timeout: float | None = ...,
    ) -> ScheduleReply: ...
    @overload
    async def trigger(
        self,
        job_id: str,
        trigger_id: str = ...,
        *,
        payload: object = ...,
        wait: bool,
        timeout: float | None = ...,
    ) -> ScheduleReply | None: ...
    async def trigger(
        self,
        job_id: str,
        trigger_id: str | None = None,
        *,
        payload: object = None,
        wait: bool = True,
        timeout: float | None = None,
    ) -> ScheduleReply | None:
        """Let a job ring once, now, outside its rule. The same `trigger_id` again is a duplicate. Without `trigger_id`
        each call is a new trigger.
        """
        fields = {} if payload is None else {"payload": payload}
        command = checked(ScheduleTrigger, id=job_id, trigger_id=trigger_id or uuid4().hex, **fields)
        return await self.send(command, wait=wait, timeout=timeout)

    async def status(
        self, job_id: str, *, history: int = 10, upcoming: int = 3, timeout: float | None = None
    ) -> JobState | None:
        """Ask how a job stands and when it rings next. Returns None for an id without a job. Raises `Rejected` if the
        job belongs to another user.
        """
        reply = await self.send(checked(ScheduleQuery, id=job_id, history=history, upcoming=upcoming), timeout=timeout)
        return JobState.model_validate(reply.model_dump()) if reply.status is not None else None

    async def bulk(
        self,
        action: Literal["pause", "resume", "cancel", "trigger"],
        bulk_id: str | None = None,
        *,
        timeout: float | None = None,
        **fields: Unpack[BulkFields],
    ) -> BulkProgress:
        """Pause, resume, cancel or trigger all jobs that match `labels`, `topic` and `id_prefix`, of which at least one
        is needed, and return how many they were. With `dry_run` nothing changes. The call waits until all are done; it
        goes on if the timeout comes first, and the same call with the same `bulk_id` waits again.
        """
        selector = {name: fields[name] for name in ("labels", "topic", "id_prefix") if name in fields}
        rest = {name: fields[name] for name in ("dry_run", "note") if name in fields}
        command = checked(ScheduleBulk, id=bulk_id or uuid4().hex, action=action, selector=selector, **rest)
        reply = await self.send(command, timeout=timeout)
        if reply.bulk is None:
            raise RuntimeError(f"{reply.outcome} without numbers: this Duebell knows no bulks")
        return reply.bulk

    async def bulk_status(self, bulk_id: str, *, timeout: float | None = None) -> BulkProgress | None:
        """Ask how far a bulk has come. Returns None if there is none of this id, or a job has it."""
        reply = await self.send(checked(ScheduleQuery, id=bulk_id, history=0, upcoming=0), timeout=timeout)
        return reply.bulk

    async def schedule_many(
        self,
        requests: Iterable[ScheduleRequest] | AsyncIterable[ScheduleRequest],
        *,
        in_flight: int = 200,
        wait: bool = True,
        timeout: float | None = None,
    ) -> int:
        """Send requests made by `duebell.request`, `in_flight` of them at a time, and gather their verdicts. Returns
        how many were sent. Raises `SomeFailed` in the end if some were refused or failed. A request keeps its revision,
        so all of them can safely be sent again.
        """
        return await send_many(requests, lambda each: self.send(each, wait=wait, timeout=timeout), in_flight)

    @overload
    async def send(
        self,
        command: Command,
        *,
        wait: Literal[True] = ...,
        timeout: float | None = ...,
        headers: Mapping[str, str] | None = ...,
    ) -> ScheduleReply: ...
    @overload
    async def send(
        self, command: Command, *, wait: bool, timeout: float | None = ..., headers: Mapping[str, str] | None = ...
    ) -> ScheduleReply | None: ...
    async def send(
        self,
        command: Command,
        *,
        wait: bool = True,
        timeout: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ScheduleReply | None:
        """Send any command. The same object again is the same command, with the same revision: a duplicate. `headers`
        may carry a W3C `traceparent`, which then goes with every event that comes of the command.
        """
        if self._publisher is None:
            raise RuntimeError("use it as `async with Scheduler(…) as duebell:`")
        kind = type(command).__name__
        outgoing = Outgoing(
            command.id,
            kind,
            ROUTING_KEYS[kind],
            encoded(command),
            datetime.now(UTC),
            self._user_id,
            self._app_id,
            headers or {},
        )
        seconds = self._timeout if timeout is None else timeout
        if not wait:
            await self._publisher.send(outgoing, seconds)
            return None
        reply = await self._publisher.ask(outgoing, seconds)
        match reply.outcome:
            case Outcome.REJECTED:
                raise Rejected(reply)
            case Outcome.DUPLICATE if reply.errors:
                raise Conflict(reply)
        return reply
