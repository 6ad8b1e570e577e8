"""What the stores spend: the CPU time of Postgres with all its backends, and of RabbitMQ's Erlang machine."""

from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True)
class StoreProcesses:
    postgres: psutil.Process
    rabbitmq: psutil.Process

    def cpu_seconds(self) -> tuple[float, float]:
        """Since they were started: Postgres', RabbitMQ's."""
        return _of_tree(self.postgres), _of_tree(self.rabbitmq)


def _of_tree(root: psutil.Process) -> float:
    # The root's own account has the children that have ended; a living one that ends meanwhile is missed by one look.
    times = root.cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for child in root.children(recursive=True):
        try:
            spent = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += spent.user + spent.system
    return float(total)
