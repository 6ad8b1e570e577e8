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


class ClusterFault(StrEnum):
    """The faults of a run on three nodes of RabbitMQ and two servers of Postgres."""

    NODE_IN_USE_KILLED = "kill -9 of the node in use"
    LEADER_KILLED = "kill -9 of the leader of the queues"
    EACH_NODE_KILLED = "kill -9 of each node in turn"
    NODE_FROZEN = "the node in use frozen"
    MAJORITY_KILLED = "kill -9 of two nodes of three"

    PRIMARY_KILLED = "primary killed, standby promoted"
    PRIMARY_FROZEN = "primary frozen, standby promoted"
    STANDBY_SILENT = "standby silent"
    STANDBY_SILENT_AND_PROMOTED = "standby silent, then promoted"
    OLD_PRIMARY_BACK = "the old primary comes back"

    PRIMARY_KILLED_ASYNC = "asynchronous, primary killed"
    STANDBY_BEHIND_ASYNC = "asynchronous, standby behind, primary killed"

    @property
    def target(self) -> str:
        return BROKER if "NODE" in self.name or self in (self.LEADER_KILLED, self.MAJORITY_KILLED) else POSTGRES


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


def may_duplicate(fault: Fault | ClusterFault, target: str) -> bool:
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
