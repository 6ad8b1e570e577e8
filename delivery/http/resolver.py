"""Name lookups for webhook calls, guarded. A name is looked up once per connection, all of its addresses must be
allowed, and the connection goes to one of these addresses. So a name whose addresses change between the check and the
connection cannot pass the guard.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from delivery.errors import LookupFailed, TooManyLookups
from shared.contract.address_rules import AddressRules

# A lookup that hangs keeps its thread until the operating system ends it. This limits the threads.
MAX_LOOKUPS = 512
# Lookups of names below one domain often hang together. This limit leaves lookups for the names of other domains.
MAX_HANGING_LOOKUPS_PER_DOMAIN = 64

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]
Lookup = Callable[[str, int], list[AddressInfo]]


def system_lookup(host: str, port: int) -> list[AddressInfo]:
    """Look a name up with the system's resolver. The call blocks."""
    return [*socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)]


@dataclass(frozen=True, slots=True)
class _LookupResult:
    infos: list[AddressInfo]
    error: OSError | None = None


@dataclass(frozen=True, slots=True)
class _PendingLookup:
    domain: str
    started_at: float  # by loop.time()
    end: asyncio.Future[_LookupResult]


class GuardedResolver(AbstractResolver):
    """Looks names up for aiohttp. Each lookup has a deadline and a thread of its own, so that a lookup which hangs
    delays no other. Calls to one host share a lookup, even if their ports differ.
    """

    def __init__(self, rules: AddressRules, deadline: float, lookup: Lookup = system_lookup) -> None:
        self._rules = rules
        self._deadline = deadline
        self._lookup = lookup
        self._pending: dict[str, _PendingLookup] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host.

        LookupFailed: the name has no address, or there was no answer in time. ForbiddenAddress: one of the addresses is
        not allowed. TooManyLookups: the lookup was not made.
        """
        lookup = self._pending.get(host) or self._start(host, port)
        try:
            async with asyncio.timeout(self._deadline):
                looked_up = await asyncio.shield(lookup.end)
        except TimeoutError:
            raise LookupFailed(None, f"the lookup of {host} took longer than {self._deadline} s") from None
        if looked_up.error is not None:
            raise LookupFailed(*looked_up.error.args) from looked_up.error
        if not looked_up.infos:
            raise LookupFailed(None, f"{host} has no address")
        for info in looked_up.infos:
            self._rules.check_address(str(info[4][0]))
        return [
            ResolveResult(hostname=host, host=str(address[0]), port=port, family=family, proto=proto, flags=0)
            for family, _, proto, _, address in looked_up.infos
        ]

    async def close(self) -> None:
        """Do nothing: lookups that hang stay in their threads, which do not delay the end of the process."""

    def _start(self, host: str, port: int) -> _PendingLookup:
        loop = asyncio.get_running_loop()
        lookup = _PendingLookup(domain_of(host), loop.time(), loop.create_future())
        if not self._has_room_for(lookup):
            raise TooManyLookups
        self._pending[host] = lookup

        def finish(looked_up: _LookupResult) -> None:
            del self._pending[host]
            if not lookup.end.done():
                lookup.end.set_result(looked_up)

        def look_up() -> None:
            try:
                looked_up = _LookupResult(self._lookup(host, port))
            except OSError as error:
                looked_up = _LookupResult([], error)
            except Exception as error:  # noqa: BLE001 - a label that is too long, for example; calls wait for the result
                looked_up = _LookupResult([], OSError(None, f"{type(error).__name__}: {error}"))
            with suppress(RuntimeError):  # the loop is closed: no call waits any more
                loop.call_soon_threadsafe(finish, looked_up)

        # A daemon thread: a lookup that hangs must not delay the end of the process.
        try:
            threading.Thread(target=look_up, daemon=True, name="name lookup").start()
        except RuntimeError:  # the system gives no more threads
            del self._pending[host]
            raise TooManyLookups from None
        return lookup

    def _has_room_for(self, new: _PendingLookup) -> bool:
        """Tell whether one more lookup may start. A lookup counts as hanging after its deadline; many lookups that have
        not reached it are no reason to refuse one.
        """
        hanging = [other for other in self._pending.values() if new.started_at - other.started_at > self._deadline]
        of_domain = sum(other.domain == new.domain for other in hanging)
        return len(self._pending) < MAX_LOOKUPS and of_domain < MAX_HANGING_LOOKUPS_PER_DOMAIN


def domain_of(host: str) -> str:
    """Return the last two labels of a name. Hanging lookups are counted by them.

    They are not the registrable domain: all names below `co.uk` share one limit. Reaching the limit only delays a
    delivery.
    """
    return ".".join(host.split(".")[-2:])
