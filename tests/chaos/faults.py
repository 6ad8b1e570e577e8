"""The faults of a chaos run and their targets. Pure: how each fault is made is in the modules `strike_…`."""

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
    FREEZE_PAST_LEASE = "frozen past its lease, then resumed"
    CLOCK_AHEAD = "clock an hour ahead"
    CLOCK_BEHIND = "clock an hour behind"

    BROKER_KILL = "killed and restarted"
    BROKER_FREEZE = "frozen"
    BROKER_ALARM = "memory alarm"
    BROKER_CLOSE_CONNECTIONS = "all connections closed"
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
    """The services, stores or points that the fault can strike."""
    match fault:
        case Fault.KILL_AT_POINT:
            return tuple(point.value for point in Point)
        case Fault.FREEZE_PAST_LEASE:
            return ("delivery",)
        case Fault.KILL | Fault.TERM | Fault.FREEZE | Fault.CLOCK_AHEAD | Fault.CLOCK_BEHIND:
            return SERVICES
        case Fault.CUT | Fault.STALL | Fault.ONE_WAY | Fault.DELAY | Fault.DRIP:
            return (BROKER, POSTGRES)
        case _:
            return (BROKER,) if fault.name.startswith("BROKER") else (POSTGRES,)


def may_duplicate(fault: Fault, target: str) -> bool:
    """Tell whether the fault may make an event be published twice: not an orderly stop, and not a fault of a service
    that does not publish it.
    """
    return fault is not Fault.TERM and track_of(target) in {"producer", STORES}


def track_of(target: str) -> str:
    """The track of a target. Strikes of one track come one after the other; each service has a track, the stores share
    one.
    """
    service = target.partition(":")[0]
    return service if service in SERVICES else STORES
