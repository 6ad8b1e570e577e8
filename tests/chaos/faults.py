"""What can be done to a running system, by name, and to what. Pure: how it is done is in the modules `strike_…`."""

from enum import StrEnum

from shared.runtime.fault_points import Point

SERVICES = ("consumer", "producer", "delivery")
BROKER, POSTGRES = "RabbitMQ", "Postgres"
STORES = "stores"


class Fault(StrEnum):
    KILL = "SIGKILL"
    TERM = "SIGTERM"
    FREEZE = "SIGSTOP, then SIGCONT"
    KILL_AT_POINT = "SIGKILL at a named point"
    OUTSLEEP_LEASE = "frozen past its lease, then woken"
    CLOCK_AHEAD = "clock an hour ahead"
    CLOCK_BEHIND = "clock an hour behind"

    BROKER_KILL = "killed and restarted"
    BROKER_FREEZE = "frozen"
    BROKER_ALARM = "memory alarm"
    BROKER_HANG_UP = "all connections closed"
    BROKER_UNBIND = "bindings deleted"
    BROKER_FULL = "a listener's queue full"

    POSTGRES_RESTART = "immediate restart"
    POSTGRES_TERMINATE = "backends terminated"
    POSTGRES_FREEZE = "backends frozen"

    CUT = "proxy cuts"
    STALL = "proxy stalls"
    ONE_WAY = "proxy drops the answers"
    DELAY = "proxy delays"
    DRIP = "proxy writes byte by byte"


def targets_of(fault: Fault) -> tuple[str, ...]:
    """Whom it can be done to."""
    match fault:
        case Fault.KILL_AT_POINT:
            return tuple(point.value for point in Point)
        case Fault.OUTSLEEP_LEASE:
            return ("delivery",)
        case Fault.KILL | Fault.TERM | Fault.FREEZE | Fault.CLOCK_AHEAD | Fault.CLOCK_BEHIND:
            return SERVICES
        case Fault.CUT | Fault.STALL | Fault.ONE_WAY | Fault.DELAY | Fault.DRIP:
            return (BROKER, POSTGRES)
        case _:
            return (BROKER,) if fault.name.startswith("BROKER") else (POSTGRES,)


def may_duplicate(fault: Fault, target: str) -> bool:
    """Whether an event may be published twice because of it: not after an orderly stop, and not because of what happens
    to those who do not publish it.
    """
    return fault is not Fault.TERM and track_of(target) in {"producer", STORES}


def track_of(target: str) -> str:
    """What happens to one service, and what happens to the stores, happens one after the other; all else, at once."""
    service = target.partition(":")[0]
    return service if service in SERVICES else STORES
