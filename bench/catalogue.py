"""Every benchmark, in the order in which they run."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from bench import (
    bulk,
    console,
    delayed,
    delivering,
    firing,
    flat_cost,
    history,
    http_clients,
    ingest,
    punctuality,
    recurrence,
    scale_out,
)
from bench.figures import Figure
from bench.peers import beside
from bench.plan import Plan
from bench.rig import Rig


@dataclass(frozen=True, slots=True)
class Benchmark:
    title: str
    run: Callable[[Rig, Plan], AsyncIterator[Figure]]


BENCHMARKS: Mapping[str, Benchmark] = {
    "firing": Benchmark("One producer fires what is due", firing.run),
    "history": Benchmark("What the history costs a producer", history.run),
    "ingest": Benchmark("One consumer stores what waits in its inbox", ingest.run),
    "bulk": Benchmark("One consumer acts on all jobs that match, and what is due goes on", bulk.run),
    "delayed": Benchmark("Delayed messages, beside jobs of the same size", delayed.run),
    "delivery": Benchmark("One delivery process calls webhooks", delivering.run),
    "clients": Benchmark("HTTP clients alone, the same call", http_clients.run),
    "punctuality": Benchmark("How late, from due to received", punctuality.run),
    "flat": Benchmark("The same work beside more and more jobs", flat_cost.run),
    "scale": Benchmark("Two of each, on the same stores", scale_out.run),
    "recurrence": Benchmark("What a step of a rule costs, by the rule's age", recurrence.run),
    "console": Benchmark("The console's pages beside many schedules and a long history", console.run),
    "peers": Benchmark("Other schedulers on the same work", beside.run),
}
# Needs a network.
ON_REQUEST = ("peers",)
