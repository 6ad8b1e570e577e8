"""Names to addresses, guarded. A name is looked up once per connection, every address it has must be allowed, and the
connection goes to one of those very addresses: a name that has other addresses a moment later gains nothing.
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
from delivery.http.address_guard import AddressRules

# A lookup that hangs keeps its thread until the system gives up on it; this is how many there may be at once.
MAX_LOOKUPS = 512
# Names below one domain tend to hang together: the others are to find a lookup to spare.
MAX_HANGING_OF_ONE_DOMAIN = 64

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]
Lookup = Callable[[str, int], list[AddressInfo]]


def system_lookup(host: str, port: int) -> list[AddressInfo]:
    return [*socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)]


@dataclass(frozen=True, slots=True)
class _LookedUp:
    infos: list[AddressInfo]
    error: OSError | None = None


@dataclass(frozen=True, slots=True)
class _UnderWay:
    domain: str
    since: float
    end: asyncio.Future[_LookedUp]


class GuardedResolver(AbstractResolver):
    """Gives each lookup a thread of its own, so that one which hangs delays no other, and a deadline. Calls to one host
    share a lookup, whatever their ports.
    """

    def __init__(self, rules: AddressRules, deadline: float, lookup: Lookup = system_lookup) -> None:
        self._rules = rules
        self._deadline = deadline
        self._lookup = lookup
        self._under_way: dict[str, _UnderWay] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """LookupFailed if there is no answer, ForbiddenAddress if one of the answers is not allowed, TooManyLookups if
        the lookup was not made.
        """
        under_way = self._under_way.get(host) or self._start(host, port)
        try:
            async with asyncio.timeout(self._deadline):
                looked_up = await asyncio.shield(under_way.end)
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
        """Lookups that hang are left to their threads, which do not hold up the end of the process."""

    def _start(self, host: str, port: int) -> _UnderWay:
        loop = asyncio.get_running_loop()
        under_way = _UnderWay(domain_of(host), loop.time(), loop.create_future())
        if not self._has_room_for(under_way):
            raise TooManyLookups
        self._under_way[host] = under_way

        def finish(looked_up: _LookedUp) -> None:
            del self._under_way[host]
            if not under_way.end.done():
                under_way.end.set_result(looked_up)

        def look_up() -> None:
            try:
                looked_up = _LookedUp(self._lookup(host, port))
            except OSError as error:
                looked_up = _LookedUp([], error)
            except Exception as error:  # noqa: BLE001 - a label that is too long, say; calls wait for an end of it
                looked_up = _LookedUp([], OSError(None, f"{type(error).__name__}: {error}"))
            with suppress(RuntimeError):  # the loop is closed: no call waits any more
                loop.call_soon_threadsafe(finish, looked_up)

        # A daemon: a lookup that hangs must not hold up the end of the process.
        try:
            threading.Thread(target=look_up, daemon=True, name="name lookup").start()
        except RuntimeError:  # no more threads to be had
            del self._under_way[host]
            raise TooManyLookups from None
        return under_way

    def _has_room_for(self, new: _UnderWay) -> bool:
        """A lookup that is late hangs. Many at once that are not late are no reason to refuse one."""
        late = [other for other in self._under_way.values() if new.since - other.since > self._deadline]
        of_its_domain = sum(other.domain == new.domain for other in late)
        return len(self._under_way) < MAX_LOOKUPS and of_its_domain < MAX_HANGING_OF_ONE_DOMAIN


def domain_of(host: str) -> str:
    """The last two labels, by which hanging lookups are counted. This is not the registrable domain: all names below
    `co.uk` share one limit. Reaching the limit only delays a delivery.
    """
    return ".".join(host.split(".")[-2:])
