"""The metrics of every service: names, types, labels and meanings from the calls that make them, and the values of
labels from the registries that they are made in.
"""

import ast
from collections import defaultdict
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from console.metrics import Metrics as ConsoleMetrics
from consumer.metrics import Metrics as ConsumerMetrics
from delivery.metrics import Metrics as DeliveryMetrics
from producer.metrics import Metrics as ProducerMetrics
from producer.store.delayed import DELAYED, DELAYED_OVERDUE, DELAYED_RETRY
from producer.store.lanes import DUE_NOW, OVERDUE, RETRY
from producer.store.triggers import TRIGGERS
from tools.reference.calls import calls, services
from tools.reference.markdown import code, page, table

KINDS = ("Counter", "Gauge", "Histogram")


@dataclass(slots=True)
class Metric:
    name: str  # as it is exported
    kind: str
    help: str
    labels: tuple[str, ...]


def metrics() -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for call in calls(_makes_a_metric):
        arguments = [ast.literal_eval(argument) for argument in call.node.args]
        kind = str(getattr(call.node.func, "id", "")).lower()
        name = f"{arguments[0]}_total" if kind == "counter" else str(arguments[0])
        labels = tuple(arguments[2]) if len(arguments) > 2 else ()
        found.setdefault(name, Metric(name, kind, str(arguments[1]), labels))
    return found


def _makes_a_metric(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in KINDS and len(call.args) > 1


def exported() -> dict[str, set[str]]:
    """Return each metric of the services' registries as it is exported, with the services that have it."""
    found: dict[str, set[str]] = defaultdict(set)
    for service, registry in _registries().items():
        for family in registry.collect():
            found[f"{family.name}_total" if family.type == "counter" else family.name].add(service)
    return dict(found)


def _registries() -> dict[str, CollectorRegistry]:
    made = {service: CollectorRegistry() for service in ("consumer", "producer", "delivery", "console")}
    ConsumerMetrics(made["consumer"])
    producer = ProducerMetrics(made["producer"])
    for lane in (DUE_NOW, OVERDUE, RETRY, TRIGGERS, DELAYED, DELAYED_OVERDUE, DELAYED_RETRY):
        producer.of_lane(lane.name)
    DeliveryMetrics(made["delivery"])
    ConsoleMetrics(made["console"])
    return made


def _values(name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for registry in _registries().values():
        for family in registry.collect():
            if name not in {family.name, f"{family.name}_total"}:
                continue
            for sample in family.samples:
                for label, value in sample.labels.items():
                    if label != "le" and value not in found.setdefault(label, []):
                        found[label].append(value)
    return found


def metrics_page() -> str:
    everywhere = exported()
    rows = []
    for metric in metrics().values():
        values = _values(metric.name)
        labels = "; ".join(
            f"{code(label)}: {', '.join(values[label])}" if label in values else code(label) for label in metric.labels
        )
        where = services(everywhere.get(metric.name, {"shared"}))
        rows.append((code(metric.name), where, metric.kind, metric.help, labels))
    return page(
        "Metrics",
        "the metrics of the services",
        "At `/metrics` of each service. Labels come from closed lists: never an id. The exchanges of delayed messages "
        "are labels, because an operator opens each of them, and so are the few routing keys of "
        "`jobs_refused_by_routing_key`. Beside every counter "
        "and histogram prometheus-client exports when it began (`…_created`); "
        "`PROMETHEUS_DISABLE_CREATED_SERIES=true` in a service's environment leaves those out. What to do when a "
        "number is bad: [operations](../operations/alerts.md).",
        table(("metric", "service", "type", "meaning", "labels"), rows),
    )
